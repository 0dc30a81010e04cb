import { describe, expect, it } from 'vitest';
import { End } from '../message/end';
import { LinkState } from '../message/link-state';
import type { ChannelView, LinkView, SnapshotView } from '../report';
import { LINK_COUNTS, UNIT_COUNTS, type LinkCount, type UnitCount } from '../stats';
import { type Line, linkLines, unitTable } from './counts';

const NO_PACKETS = Object.fromEntries(LINK_COUNTS.map(({ name }) => [name, 0])) as Record<LinkCount, number>;
const NO_UNITS = Object.fromEntries(UNIT_COUNTS.map(({ name }) => [name, 0])) as Record<UnitCount, number>;

function link(number: number, change: Partial<LinkView> = {}): LinkView {
  return {
    link: number, name: `link ${number}`, state: LinkState.Up, datagramBytes: 1200, budgetBps: 3e6, grantedBps: 4.2e6,
    sentBps: 2.9e6, receivedBps: 0.21e6, rttMs: 48, owdMs: 24, jitterMs: 1.5, owdOut: { p50: 24.4, p95: 61, p99: 104 },
    owdIn: null, lossOut: 0.0125, lossIn: 0, queuedBytes: 1500, inFlightBytes: 23_400, relayed: false, detourMs: null,
    control: { deliveredBps: 2.87e6, queueingMs: 7.2, cause: 'own queue' },
    counts: { ...NO_PACKETS, datagramsSent: 71_000, datagramsReceived: 9_000 },
    ...change,
  };
}

function channel(number: number, name: string, counts: Partial<ChannelView['counts']>): ChannelView {
  return { channel: number, name, lateOrLost: null, counts: { ...NO_UNITS, ...counts } };
}

function snapshot(end: End, links: LinkView[], channels: ChannelView[] = []): SnapshotView {
  return { end, links, channels, values: [], drops: [] };
}

const cells = (lines: Line[], name: string): string[] | undefined => lines.find((line) => line.name === name)?.cells;

describe('lines of links', () => {
  it('have the sender\'s counts, and what the receiver got by link number', () => {
    const vehicle = snapshot(End.Vehicle, [link(0), link(3, { owdOut: null })]);
    const operator = snapshot(End.Operator, [link(3, { counts: { ...NO_PACKETS, datagramsReceived: 70_900 } })]);
    const lines = linkLines(vehicle, operator, 'up');
    expect(cells(lines, 'sent')).toEqual(['2.9', '2.9']);
    expect(cells(lines, 'datagrams')).toEqual(['71,000', '71,000']);
    expect(cells(lines, 'received')).toEqual(['–', '70,900']);
    expect(cells(lines, 'one way')).toEqual(['24/61/104', '–']);
    expect(cells(lines, 'packet size')).toEqual(['1200', '1200']);
  });

  it('repeat the links panel\'s measures only for the other direction', () => {
    const [vehicle, operator] = [snapshot(End.Vehicle, [link(0)]), snapshot(End.Operator, [link(0, { lossOut: null })])];
    const up = linkLines(vehicle, operator, 'up');
    for (const shown of ['arriving', 'granted', 'lost']) expect(cells(up, shown)).toBeUndefined();
    const down = linkLines(operator, vehicle, 'down');
    expect([cells(down, 'arriving'), cells(down, 'granted'), cells(down, 'lost')]).toEqual([['0.2'], ['4.2'], ['–']]);
  });

  it('list only packet counters that are not zero', () => {
    const idle = linkLines(snapshot(End.Operator, [link(0), link(1)]), null, 'up');
    expect(cells(idle, 'packets assigned')).toBeUndefined();
    const given = { ...NO_PACKETS, packetsGiven: 12, packetsLate: 2 };
    const busy = linkLines(snapshot(End.Vehicle, [link(0), link(1, { counts: given })]), null, 'up');
    expect(cells(busy, 'packets assigned')).toEqual(['0', '12']);
    expect(cells(busy, 'late')).toEqual(['0', '2']);
    expect(cells(busy, 'withdrawn')).toBeUndefined();
    expect(busy.filter((line) => line.starts).map((line) => line.name)).toEqual(['packets assigned']);
  });
});

describe('the table of units', () => {
  const vehicle = snapshot(End.Vehicle, [], [
    channel(0, 'control', { offered: 200, accepted: 200, delivered: 480, superseded: 3 }),
    channel(1, 'media', { offered: 3600, accepted: 3590, refusedCongested: 10 })]);
  const operator = snapshot(End.Operator, [], [
    channel(0, 'control', { offered: 500, accepted: 500, delivered: 199 }),
    channel(1, 'media', { delivered: 3580, repaired: 41, late: 4, incomplete: 6 })]);

  it('has the counts of both ends, a column per channel and direction with units', () => {
    const { heads, lines } = unitTable(vehicle, operator);
    expect(heads).toEqual(['control to here', 'media to here', 'control to vehicle']);
    expect(cells(lines, 'offered')).toEqual(['200', '3,600', '500']);
    expect(cells(lines, 'complete')).toEqual(['199', '3,580', '480']);
    expect(cells(lines, 'refused: congested')).toEqual(['0', '10', '0']);
    expect(cells(lines, 'lost: incomplete')).toEqual(['0', '6', '0']);
    expect(cells(lines, 'superseded')).toEqual(['0', '0', '3']);
  });

  it('omits reasons that never occurred, but not zero late units', () => {
    const { heads, lines } = unitTable(vehicle, snapshot(End.Operator, []));
    expect(heads).toEqual(['control to here', 'media to here', 'control to vehicle']);
    expect(cells(lines, 'lost: evicted')).toBeUndefined();
    expect(cells(lines, 'late')).toEqual(['–', '–', '0']);
  });
});
