import { describe, expect, it } from 'vitest';
import { End } from '../message/end';
import type { SnapshotView, ValueView } from '../report';
import { detailsOf } from './figures';
import { quantity } from './format';

const value = (name: string, number: number, unit = '', total = false): ValueView => ({ name, number, unit, total });

describe('values that are told by name', () => {
  it('stand under Details, but for those that have a place among the figures', () => {
    const values = [value('video budget', 3e6, 'bit/s'), value('battery', 48.5, 'V'), value('cones hit', 3, '', true)];
    const snapshot: SnapshotView = { end: End.Vehicle, links: [], channels: [], drops: [], values };
    expect(detailsOf(snapshot).map(({ name }) => name)).toEqual(['battery', 'cones hit']);
  });

  it('are shown in units that people read, any other unit as it is', () => {
    const texts = [
      value('a', 0.0029, 's'), value('a', 42, 's'), value('a', 3_150_000, 'bit/s'), value('a', 1500, 'B'),
      value('a', 12_345, '', true), value('a', 48.5, 'V'), value('a', 0.123456), value('a', 60, '/s'),
    ].map(quantity);
    expect(texts).toEqual(['2.9 ms', '42 s', '3.1 Mbit/s', '1.5 kB', '12,345', '48.5 V', '0.123', '60 /s']);
  });
});
