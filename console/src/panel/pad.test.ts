import { describe, expect, it } from 'vitest';
import type { DeviceView } from '../input/gamepad';
import { inputWords, stateWords as wordsFor } from './pad';

const VIEW: DeviceView = {
  index: 0, name: 'pad', state: 'ready', parts: [], brakeNeed: null, isRadio: false, isCalibrated: false, wasTouched: true, axes: [],
  deadZone: 0.1, needsCentre: false, sticks: null,
};
const USED: DeviceView = { ...VIEW, state: 'in use', parts: ['steering', 'throttle', 'brake'] };
const UNKNOWN: DeviceView = { ...VIEW, state: 'not known' };

describe('the header\'s device text', () => {
  it('names what drives', () => {
    expect([[], [VIEW], [USED], [USED, USED]].map((views) => inputWords(views).words))
      .toEqual(['keyboard', 'keyboard', 'keyboard and 1 device', 'keyboard and 2 devices']);
  });

  it('asks for a calibration after an unknown device was touched, if no other drives', () => {
    expect(inputWords([UNKNOWN])).toEqual({ words: 'unknown device: calibrate it', tone: 'warn' });
    expect(inputWords([{ ...UNKNOWN, wasTouched: false }]).words).toBe('keyboard');
    expect(inputWords([UNKNOWN, USED]).words).toBe('keyboard and 1 device');
  });
});

const stateWords = (view: DeviceView) => wordsFor(view, 'ackermann');

describe('the state of a device', () => {
  it('describes what to do', () => {
    expect(stateWords(UNKNOWN)).toBe('Unknown device. Calibrate it to drive with it.');
    expect(stateWords({ ...UNKNOWN, isRadio: true })).toMatch(/^A radio.*Calibrate it/);
    expect(stateWords({ ...USED, brakeNeed: 'press' })).toMatch(/^In use: steering, throttle, brake\. Press the brake once/);
    expect(stateWords({ ...USED, parts: ['throttle'], brakeNeed: 'other device' })).toMatch(/No device in use has a brake/);
    expect(stateWords({ ...USED, state: 'frozen' })).toBe('It sends nothing. Move it.');
    const lever: DeviceView = { ...USED, parts: ['steering', 'speed'], needsCentre: true };
    expect(wordsFor(lever, 'differential')).toBe('In use: turn, speed. Release its sticks and levers once: until then they are ignored.');
  });
});
