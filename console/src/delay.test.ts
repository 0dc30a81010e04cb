import { expect, it } from 'vitest';
import { LATE_MS, bandOf } from './delay';

it('delays fall into the measured bands', () => {
  const delays = [0, 125, 126, 250, 251, 375, 376, 500, 501, 5_000];
  expect(delays.map(bandOf)).toEqual([
    'unnoticed', 'unnoticed', 'noticed', 'noticed', 'challenging', 'challenging', 'difficult', 'difficult',
    'too late', 'too late']);
});

it('a picture is late once driving becomes difficult', () => {
  expect(bandOf(LATE_MS)).toBe('challenging');
  expect(bandOf(LATE_MS + 1)).toBe('difficult');
});
