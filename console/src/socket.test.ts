import { describe, expect, it } from 'vitest';
import { retryDelay } from './socket';

describe('retryDelay', () => {
  it('doubles from 250 ms to five seconds and stays there', () => {
    const delays = [1, 2, 3, 4, 5, 6, 7, 50, 5_000].map((attempt) => retryDelay(attempt, 1));
    expect(delays).toEqual([250, 500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000, 5_000]);
  });

  it('is reduced by at most a quarter', () => {
    expect(retryDelay(1, 0)).toBe(188);
    expect(retryDelay(100, 0)).toBe(3_750);
    expect(retryDelay(100, 0.5)).toBe(4_375);
  });

  it('starts at the first delay for attempt 0', () => expect(retryDelay(0, 1)).toBe(250));
});
