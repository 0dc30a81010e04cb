import { describe, expect, it } from 'vitest';
import { Calibration, STEPS, calibrationOf } from './calibration';
import { type PadState, apply, guessMapping } from './mapping';

function padOf(axes: number[], buttons: number[] = []): PadState {
  return { id: 'wheel', mapping: '', axes, buttons: buttons.map((value) => ({ value, pressed: value > 0.5 })) };
}

/** Wheel on axis 1, throttle on axis 3 (released 1), brake on axis 0 (released -1). */
const at = (wheel = 0, throttle = 1, brake = -1): PadState => padOf([brake, wheel, 0, throttle]);

/** Shows the pads one after the other and ends the step with the last. */
function step(calibration: Calibration, ...pads: PadState[]): boolean {
  for (const pad of pads) calibration.observe(pad);
  return calibration.next(pads.at(-1)!);
}

function started(): Calibration {
  const calibration = calibrationOf(at(), null);
  step(calibration, at());
  return calibration;
}

describe('Calibration', () => {
  it('learns wheel and pedals by what moved the furthest in each step', () => {
    const calibration = started();
    expect(step(calibration, at(-0.5), at(-0.9))).toBe(true);
    expect(step(calibration, at(-0.9), at(0.9))).toBe(true);
    expect(step(calibration, at(0.05, -1), at(0.05, 1))).toBe(true);
    expect(calibration.mapping()).toBeNull();
    expect(step(calibration, at(0.05, 1, 1), at(0.05))).toBe(true);
    expect(calibration.step).toBeNull();
    const mapping = calibration.mapping()!;
    expect(mapping.steering).toEqual({ axis: 1, left: -0.9, centre: 0, right: 0.9 });
    expect(mapping.throttle).toEqual({ kind: 'axis', axis: 3, released: 1, pressed: -1 });
    expect(mapping.brake).toEqual({ kind: 'axis', axis: 0, released: -1, pressed: 1 });
    expect(apply(mapping, at(-0.9, -1, -1))).toEqual({ steering: 1, throttle: 1, brake: 0 });
  });

  it('asks for its steps in order, and keeps what it does not ask for', () => {
    const base = { ...guessMapping(at()), stopButton: 9, deadZone: 0.2 };
    const calibration = calibrationOf(at(), base);
    const pads = [at(), at(-1), at(1), at(0, -1), at(0, 1, 1)];
    const asked = pads.map((pad) => {
      const step = calibration.step;
      calibration.next(pad);
      return step;
    });
    expect(asked).toEqual(STEPS);
    expect(calibration.mapping()).toMatchObject({ stopButton: 9, reverseButton: base.reverseButton, deadZone: 0.2 });
    expect(calibration.next(at())).toBe(false);
  });

  it('learns the right end though the step starts at a left end further from the centre', () => {
    const calibration = calibrationOf(at(0.04), null);
    step(calibration, at(0.04));
    step(calibration, at(-1));
    expect(step(calibration, at(-1), at(0.5), at(1))).toBe(true);
    step(calibration, at(0, -1));
    step(calibration, at(0, 1, 1));
    expect(calibration.mapping()!.steering).toEqual({ axis: 1, left: -1, centre: 0.04, right: 1 });
  });

  it('does not take the left end for the right one', () => {
    const calibration = started();
    step(calibration, at(-1));
    expect(step(calibration, at(-1))).toBe(false);
    expect(calibration.step).toBe('right');
  });

  it('stays in its step while nothing moves far enough', () => {
    const calibration = started();
    expect(step(calibration, at(-0.2))).toBe(false);
    expect(calibration.step).toBe('left');
    expect(step(calibration, at(-0.3))).toBe(true);
  });

  it('allows another try after the wrong thing was moved', () => {
    const calibration = started();
    step(calibration, at(-1));
    expect(step(calibration, at(-1, -1), at(1, 1))).toBe(false);
    expect(step(calibration, at(1, 1))).toBe(true);
  });

  it('does not take a wheel that is off its centre for a pedal', () => {
    const calibration = started();
    step(calibration, at(-1));
    step(calibration, at(1));
    expect(step(calibration, at(1))).toBe(false);
    expect(step(calibration, at(1, 0.3))).toBe(true);
  });

  it('learns pedals that are buttons, but not a button that was down at rest', () => {
    const calibration = new Calibration(guessMapping(padOf([0])));
    step(calibration, padOf([0], [1, 0, 0]));
    step(calibration, padOf([-1], [1, 0, 0]));
    step(calibration, padOf([1], [1, 0, 0]));
    expect(step(calibration, padOf([0], [1, 0, 0]))).toBe(false);
    expect(step(calibration, padOf([0], [1, 0, 1]), padOf([0], [1, 0, 0]))).toBe(true);
    expect(step(calibration, padOf([0], [1, 1, 0]), padOf([0], [1, 0, 0]))).toBe(true);
    expect(calibration.mapping()).toMatchObject({
      throttle: { kind: 'button', button: 2 }, brake: { kind: 'button', button: 1 },
    });
  });

  it('learns two pedals that share an axis', () => {
    const calibration = new Calibration(guessMapping(padOf([0, 0])));
    for (const axes of [[0, 0], [-1, 0], [1, 0]]) step(calibration, padOf(axes));
    step(calibration, padOf([0, -1]), padOf([0, 0]));
    step(calibration, padOf([0, 1]), padOf([0, 0]));
    expect(calibration.mapping()).toMatchObject({
      throttle: { kind: 'axis', axis: 1, released: 0, pressed: -1 },
      brake: { kind: 'axis', axis: 1, released: 0, pressed: 1 },
    });
  });
});
