import { describe, expect, it } from 'vitest';
import type { VehicleView } from '../report';
import { linkWords, mayPick, sinceWords, stateWords } from './fleet';

const NOW = new Date(2026, 4, 3, 15, 30).getTime();
const SINCE = new Date(2026, 4, 3, 14, 2).getTime();
const FREE: VehicleView = {
  name: 'mule', state: 'free', driver: null, sinceUnixMs: null, place: null, links: 3, linkCount: 4, roundTripMs: 42,
};

describe('a vehicle of the list', () => {
  it('shows who drives it, or since when it is away', () => {
    const at = sinceWords(SINCE, NOW);
    const told = (change: Partial<VehicleView>): string => stateWords({ ...FREE, ...change }, NOW);
    expect(told({})).toBe('free');
    expect(told({ state: 'own', driver: 'anna', sinceUnixMs: SINCE })).toBe(`yours since ${at}`);
    expect(told({ state: 'taken', driver: 'bert', sinceUnixMs: SINCE })).toBe(`driven by bert since ${at}`);
    expect(told({ state: 'taken' })).toBe('driven by another operator');
    expect(told({ state: 'away', sinceUnixMs: SINCE })).toBe(`away since ${at}`);
    expect(told({ state: 'away', driver: 'bert' })).toBe('away, reserved for bert');
  });

  it('shows the time of today, and the date of earlier days', () => {
    expect(sinceWords(SINCE, NOW)).toBe('14:02');
    expect(sinceWords(SINCE - 3 * 86_400_000, NOW)).toMatch(/2026/);
  });

  it('shows its known links', () => {
    expect(linkWords(FREE)).toBe('3 of 4 links');
    expect(linkWords({ links: 4, linkCount: 4 })).toBe('4 links');
    expect(linkWords({ links: 0, linkCount: 1 })).toBe('1 link');
    expect(linkWords({ links: 0, linkCount: 0 })).toBe('–');
  });

  it('can be picked unless another operator has it', () => {
    const picked = (change: Partial<VehicleView>): boolean => mayPick({ ...FREE, ...change });
    expect([picked({}), picked({ state: 'own', driver: 'anna' }), picked({ state: 'away' })]).toEqual([true, true, true]);
    expect([picked({ state: 'taken', driver: 'bert' }), picked({ state: 'away', driver: 'bert' })]).toEqual([false, false]);
  });
});
