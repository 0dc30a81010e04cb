import { describe, expect, it } from 'vitest';
import { End } from '../message/end';
import type { SnapshotView, ValueView } from '../report';
import { Told, detailsOf } from './figures';
import { kmh, quantity } from './format';

const value = (name: string, number: number, unit = '', total = false): ValueView => ({ name, number, unit, total });

const snapshotOf = (values: ValueView[]): SnapshotView => ({ end: End.Vehicle, links: [], channels: [], drops: [], values });

describe('named values', () => {
  it('are under Details, unless they are among the figures', () => {
    const values = [value('video budget', 3e6, 'bit/s'), value('battery', 48.5, 'V'), value('cones hit', 3, '', true)];
    expect(detailsOf(snapshotOf(values)).map(({ name }) => name)).toEqual(['battery', 'cones hit']);
  });

  it('are shown in units that people read, other units as they are', () => {
    const texts = [
      value('a', 0.0029, 's'), value('a', 42, 's'), value('a', 3_150_000, 'bit/s'), value('a', 1500, 'B'),
      value('a', 12_345, '', true), value('a', 48.5, 'V'), value('a', 0.123456), value('a', 60, '/s'),
    ].map(quantity);
    expect(texts).toEqual(['2.9 ms', '42 s', '3.1 Mbit/s', '1.5 kB', '12,345', '48.5 V', '0.123', '60 /s']);
  });

  it('are dashes once they are not live or no longer reported', () => {
    const told = new Told();
    const texts = (snapshot: SnapshotView | null) => [...told.take(snapshot)];
    const [battery, range] = [value('battery', 48.5, 'V'), value('range', 12, 'km')];
    expect(texts(null)).toEqual([]);
    expect(texts(snapshotOf([battery, range]))).toEqual([['battery', '48.5 V'], ['range', '12 km']]);
    expect(texts(snapshotOf([range]))).toEqual([['battery', '–'], ['range', '12 km']]);
    expect(texts(null)).toEqual([['battery', '–'], ['range', '–']]);
    expect(texts(snapshotOf([battery]))).toEqual([['battery', '48.5 V'], ['range', '–']]);
  });
});

describe('a speed', () => {
  it('is shown in km/h, or as a dash if unknown', () => {
    expect([10, -1.4, -0.01, 0, null].map(kmh)).toEqual(['36', '-5', '0', '0', '–']);
  });
});
