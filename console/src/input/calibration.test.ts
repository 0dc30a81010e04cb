import { describe, expect, it } from 'vitest';
import { Calibration, STEPS } from './calibration';
import { type Mapping, type PadState, STANDARD, apply } from './mapping';
import { REST } from './ramp';

function padOf(axes: number[], buttons: number[] = []): PadState {
  return { id: 'wheel', index: 0, mapping: '', axes, buttons: buttons.map((value) => ({ value, pressed: value > 0.5 })) };
}

/**
 * State of a device with the wheel on axis 1, the throttle on axis 3 (released 1) and the brake on
 * axis 0 (released -1).
 */
const at = (wheel = 0, throttle = 1, brake = -1): PadState => padOf([brake, wheel, 0, throttle]);
const pressed = (wheel = 0) => ({ throttle: [at(wheel, -1), at(wheel, 1)], brake: [at(wheel, 1, 1), at(wheel, 1, -1)] });

/** Shows the calibration one state after the other, and ends the step with the last. */
function step(calibration: Calibration, ...pads: PadState[]): boolean {
  for (const pad of pads) calibration.observe(pad);
  return calibration.next(pads.at(-1)!);
}

function started(...turns: PadState[][]): Calibration {
  const calibration = new Calibration(null);
  for (const pads of [[at()], ...turns]) expect(step(calibration, ...pads), `${calibration.refusal}`).toBe(true);
  return calibration;
}

const TURNED = [[at(-0.9)], [at(-0.9), at(0.9)]];

describe('Calibration', () => {
  it('assigns wheel and pedals to what moved furthest in each step', () => {
    const calibration = started([at(-0.5), at(-0.9)], [at(-0.9), at(0.9)], pressed(0.05).throttle, pressed(0.05).brake);
    expect(calibration.mapping()).toBeNull();
    expect(step(calibration, at(0.05))).toBe(true);
    expect(calibration.step).toBeNull();
    const mapping = calibration.mapping()!;
    expect(mapping.steering).toEqual({ axis: 1, left: -0.9, centre: 0, right: 0.9 });
    expect(mapping.throttle).toEqual({ kind: 'axis', axis: 3, released: 1, pressed: -1 });
    expect(mapping.brake).toEqual({ kind: 'axis', axis: 0, released: -1, pressed: 1 });
    expect(apply(mapping, at(-0.9, -1, -1))).toEqual({ ...REST, steering: 1, throttle: 1 });
  });

  it('asks for its steps in order and keeps the rest of the mapping', () => {
    const base: Mapping = { ...STANDARD, stopButton: 9, deadZone: 0.2 };
    const calibration = new Calibration(base);
    const { throttle, brake } = pressed();
    const asked = [[at()], [at(-1)], [at(1)], throttle, brake, [at()]].map((pads) => {
      const asks = calibration.step;
      step(calibration, ...pads);
      return asks;
    });
    expect(asked).toEqual(STEPS.ackermann);
    expect(calibration.mapping()).toMatchObject({ stopButton: 9, reverseButton: base.reverseButton, deadZone: 0.2 });
    expect(calibration.next(at())).toBe(false);
  });

  it('learns the right end even if the step starts at a far left end', () => {
    const calibration = new Calibration(null);
    for (const pads of [[at(0.04)], [at(-1)], [at(-1), at(0.5), at(1)], ...Object.values(pressed()), [at()]]) step(calibration, ...pads);
    expect(calibration.mapping()!.steering).toEqual({ axis: 1, left: -1, centre: 0.04, right: 1 });
  });

  it('allows another try after a wrong movement', () => {
    const calibration = started([at(-1)]);
    expect(step(calibration, at(-1, -1), at(1, 1))).toBe(false);
    expect(step(calibration, at(1, 1))).toBe(true);
  });

  it('learns pedals that are buttons, unless the button was down at rest', () => {
    const calibration = new Calibration(null);
    for (const axes of [[0], [-1], [1]]) step(calibration, padOf(axes, [1, 0, 0]));
    expect(step(calibration, padOf([0], [1, 0, 0]))).toBe(false);
    expect(step(calibration, padOf([0], [1, 0, 1]), padOf([0], [1, 0, 0]))).toBe(true);
    expect(step(calibration, padOf([0], [1, 1, 0]), padOf([0], [1, 0, 0]))).toBe(true);
    step(calibration, padOf([0], [1, 0, 0]));
    expect(calibration.mapping()).toMatchObject({
      throttle: { kind: 'button', button: 2 }, brake: { kind: 'button', button: 1 },
    });
  });

  it('learns two pedals on the two sides of one axis', () => {
    const calibration = new Calibration(null);
    for (const axes of [[0, 0], [-1, 0], [1, 0]]) step(calibration, padOf(axes));
    step(calibration, padOf([0, -1]), padOf([0, 0]));
    step(calibration, padOf([0, 1]), padOf([0, 0]));
    step(calibration, padOf([0, 0]));
    expect(calibration.mapping()).toMatchObject({
      throttle: { kind: 'axis', axis: 1, released: 0, pressed: -1 },
      brake: { kind: 'axis', axis: 1, released: 0, pressed: 1 },
    });
  });

  it('skips missing parts: only a wheel, only pedals, but not nothing', () => {
    const wheel = started(...TURNED);
    expect([wheel.skip(at()), wheel.skip(at()), step(wheel, at())]).toEqual([true, true, true]);
    expect(wheel.mapping()).toMatchObject({ throttle: null, brake: null, steering: { axis: 1 } });
    const pedals = new Calibration(null);
    step(pedals, at());
    expect([pedals.skip(at()), pedals.step]).toEqual([true, 'throttle']);
    for (const pads of [...Object.values(pressed()), [at()]]) expect(step(pedals, ...pads)).toBe(true);
    expect(pedals.mapping()).toMatchObject({ steering: null, throttle: { axis: 3 }, brake: { axis: 0 } });
    const none = new Calibration(null);
    expect(none.skip(at())).toBe(false);
    step(none, at());
    expect([none.skip(at()), none.skip(at()), none.skip(at()), none.step]).toEqual([true, true, false, 'brake']);
    expect(none.refusal).toMatch(/would control nothing/);
  });
});

describe('a contradictory answer is refused and its step repeated', () => {
  const refused = (calibration: Calibration, ...pads: PadState[]) => {
    const asked = calibration.step;
    expect(step(calibration, ...pads)).toBe(false);
    return [calibration.step === asked ? 'same' : calibration.step, calibration.refusal];
  };
  const LEARNED = [...TURNED, pressed().throttle];

  it('too little travel', () => {
    const calibration = started();
    expect(refused(calibration, at(-0.2))).toEqual(['same', 'Nothing moved far enough.']);
    expect(step(calibration, at(-0.3))).toBe(true);
  });

  it('the left end again instead of the right one', () => expect(refused(started([at(-1)]), at(-0.4), at(-1))[1]).toMatch(/left side again/));

  it('another axis for the right end than for the left', () => {
    expect(refused(started([at(-1)]), at(-1, 1), at(-1, -1))[1]).toMatch(/Axis 3 moved; to the left it was axis 1/);
  });

  it('the wheel instead of a pedal, a pedal that hardly moves', () => {
    expect(refused(started(...TURNED), at(1), at(-1))[1]).toBe('Nothing moved far enough.');
    expect(refused(started(...TURNED), at(0, 0.6), at())[1]).toBe('Nothing moved far enough.');
  });

  it('two pedals at once', () => {
    expect(refused(started(...TURNED), at(0, -1, 1), at())).toEqual(['same', expect.stringMatching(/Axes \d and \d both moved/)]);
  });

  it('the throttle\'s axis for the brake', () => {
    expect(refused(started(...LEARNED), ...pressed().throttle)).toEqual(['same', 'That is the throttle again (axis 3). Press only the brake.']);
  });

  it('a button for both pedals', () => {
    const calibration = new Calibration(null);
    for (const axes of [[0], [-1], [1]]) step(calibration, padOf(axes, [0]));
    step(calibration, padOf([0], [1]), padOf([0], [0]));
    expect(refused(calibration, padOf([0], [1]), padOf([0], [0]))[1]).toMatch(/throttle again \(button 0\)/);
  });

  it('a pedal still pressed at Next, which would be reversed', () => {
    expect(refused(started(...TURNED), at(), at(0, -1))).toEqual(['same', expect.stringMatching(/rests at 1\.0 and is at -1\.0 now/)]);
  });

  it('a pedal of an unknown axis still pressed at Next, found at the check', () => {
    // Axis 3 reads 0 until it was near 0, as Chromium shows it.
    const calibration = new Calibration(null);
    for (const pads of [[at(0, 0)], [at(-1, 0)], [at(1, 0)], [at(0, 0), at(0, -1)], [at(0, -1), at(0, -1, 1), at(0, -1)]]) step(calibration, ...pads);
    expect(calibration.step).toBe('check');
    expect(step(calibration, at(0, 1))).toBe(false);
    expect([calibration.step, calibration.mapping()]).toEqual(['throttle', null]);
    expect(calibration.refusal).toMatch(/Axis 3 is at 1\.0 now, but was at -1\.0 when the throttle should have been released/);
    for (const pads of [...Object.values(pressed()), [at()]]) expect(step(calibration, ...pads)).toBe(true);
    expect(calibration.mapping()!.throttle).toEqual({ kind: 'axis', axis: 3, released: 1, pressed: -1 });
  });
});

describe('axes that read 0 until first near 0, as in Chromium', () => {
  it('are measured correctly: throttle axis 2, brake axis 3, both from 1 to -1', () => {
    const calibration = new Calibration(null);
    const shown = maskedWheel();
    const wheel = (value: number) => [shown([value, 1, 1, 1, 0, 0])];
    const press = (axis: number) => [1, 0.5, 0.04, -0.4, -1, -0.3, 0.2, 1].map((value) => {
      const axes = [0, 1, 1, 1, 0, 0];
      axes[axis] = value;
      return shown(axes);
    });
    for (const pads of [wheel(0), wheel(-1), wheel(1), press(2), press(3), wheel(0)]) {
      expect(step(calibration, ...pads), `${calibration.refusal}`).toBe(true);
    }
    expect(calibration.mapping()).toMatchObject({
      steering: { axis: 0, left: -1, centre: 0, right: 1 },
      throttle: { axis: 2, released: 1, pressed: -1 },
      brake: { axis: 3, released: 1, pressed: -1 },
    });
  });
});

/**
 * Returns a function that converts raw axes to what Chromium shows: 0 for each axis that was never
 * within 0.1 of 0.
 */
function maskedWheel(): (raw: number[]) => PadState {
  const known = new Set<number>();
  return (raw) => padOf(raw.map((value, axis) => {
    if (Math.abs(value) < 0.1) known.add(axis);
    return known.has(axis) ? value : 0;
  }));
}
