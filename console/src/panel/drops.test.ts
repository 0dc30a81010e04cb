import { describe, expect, it } from 'vitest';
import type { StatusView, TelemetryView, VideoView } from '../report';
import { groupDrops, totals } from './drops';

const told = (...drops: [string, number][]): StatusView =>
  ({ drops: drops.map(([name, count]) => ({ name, count })) }) as StatusView;
const sums = { picturesDropped: 3, slicesDropped: 4 } as TelemetryView;
const page = { drops: [{ name: 'decoder error', count: 2 }] } as VideoView;

describe('drops', () => {
  it('are grouped by whose they are', () => {
    const groups = groupDrops(told(['packet_late', 5], ['vehicle media_expired', 7]), sums, page);
    expect(groups.operator).toEqual([{ name: 'packet_late', count: 5, surplus: false }]);
    expect(groups.vehicle).toEqual([{ name: 'media_expired', count: 7, surplus: false }]);
    expect(groups.console).toEqual([{ name: 'decoder error', count: 2, surplus: false }]);
  });

  it('count no surplus, the operator\'s or the vehicle\'s', () => {
    const groups = groupDrops(told(['packet_surplus', 40_000], ['vehicle packet_surplus', 9], ['unit_late', 1]), null, page);
    expect(totals(groups)).toEqual({ dropped: 3, surplus: 40_009 });
  });

  it('take the vehicle\'s sums only while its names are not known', () => {
    expect(totals(groupDrops(told(['unit_late', 1]), sums, null)).dropped).toBe(8);
    expect(totals(groupDrops(told(['vehicle media_expired', 7]), sums, null)).dropped).toBe(7);
  });

  it('are none before anything was told', () => {
    expect(totals(groupDrops(null, null, null))).toEqual({ dropped: 0, surplus: 0 });
  });
});
