import { describe, expect, it } from 'vitest';
import type { GuardView } from '../guard';
import { ageWords, countdownOf } from './hud';

const guard = (mode: GuardView['mode'], leftMs: number | null) => ({
  mode, countdown: leftMs === null ? null : { cause: 'picture age', leftMs },
}) as GuardView;

describe('the countdown', () => {
  it('is told while driving, when little is left', () => {
    expect(countdownOf(guard('driving', 151))).toBeNull();
    expect(countdownOf(guard('driving', 150))).toMatchObject({ leftMs: 150 });
    expect(countdownOf(guard('limited', 0))).toMatchObject({ leftMs: 0 });
  });

  it('is none while nothing can stop', () => {
    expect([countdownOf(null), countdownOf(guard('held', 10)), countdownOf(guard('driving', null))]).toEqual([null, null, null]);
  });
});

describe('the picture\'s age', () => {
  const told = (pictureAgeMs: number | null, expectsNone = false) => ageWords({ pictureAgeMs, expectsNone });

  it('is told once it makes driving difficult', () => {
    expect([told(375), told(380), told(4_210)]).toEqual([null, 'Picture 0.4 s old', 'Picture 4.2 s old']);
  });

  it('is told as missing, but not where none is to come', () => {
    expect([told(null), told(null, true), told(9_000, true)]).toEqual(['No picture seen yet', null, null]);
  });
});
