import { expect, it } from 'vitest';
import { SIGNALS } from './generated/kinds';
import { bitsOf, membersOf } from './guard';
import { Signals } from './signals';

it('a press turns a light on and the next one off', () => {
  const signals = new Signals();
  expect(signals.press('lights')).toBe(true);
  signals.press('high-beam');
  expect(signals.list()).toEqual(['lights', 'high beam']);
  signals.press('lights');
  expect(signals.list()).toEqual(['high beam']);
});

it('one indicator ends the other, independent of hazard lights', () => {
  const signals = new Signals();
  signals.press('left');
  signals.press('right');
  signals.press('hazard');
  expect(signals.list()).toEqual(['right', 'hazard']);
});

it('the horn sounds while it is held', () => {
  const signals = new Signals();
  signals.horn = true;
  expect(signals.list()).toEqual(['horn']);
  signals.horn = false;
  expect(signals.list()).toEqual([]);
});

it('other presses are ignored', () => expect(new Signals().press('arm')).toBe(false));

it('signals convert to bits and back', () => {
  expect(bitsOf(SIGNALS, ['horn', 'hazard'])).toBe(0b100001);
  expect(membersOf(SIGNALS, 0b100001)).toEqual(['horn', 'hazard']);
});
