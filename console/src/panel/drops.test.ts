import { describe, expect, it } from 'vitest';
import { End } from '../message/end';
import type { DropView, SnapshotView, VideoView } from '../report';
import { groupDrops, totals } from './drops';

const snapshot = (end: End, drops: DropView[]): SnapshotView => ({ end, links: [], channels: [], values: [], drops });
const operator = snapshot(End.Operator, [{ name: 'unit_missing', count: 2 }, { name: 'packet_surplus', count: 900 }]);
const vehicle = snapshot(End.Vehicle, [{ name: 'media_expired', count: 5 }, { name: 'packet_surplus', count: 30 }]);
const video = { drops: [{ name: 'bad message', count: 1 }] } as VideoView;

describe('drops', () => {
  it('are listed by the process that counts them', () => {
    const groups = groupDrops(operator, vehicle, video);
    expect(groups.operator.map(({ name }) => name)).toEqual(['unit_missing', 'packet_surplus']);
    expect(groups.vehicle.map(({ name }) => name)).toEqual(['media_expired', 'packet_surplus']);
    expect(groups.console).toEqual([{ name: 'bad message', count: 1, surplus: false }]);
  });

  it('count surplus of both ends separately', () => {
    expect(totals(groupDrops(operator, vehicle, video))).toEqual({ dropped: 8, surplus: 930 });
  });

  it('are empty before the first report', () => {
    expect(totals(groupDrops(null, null, null))).toEqual({ dropped: 0, surplus: 0 });
  });
});
