import { Builder } from 'flatbuffers';
import { describe, expect, it } from 'vitest';
import { type Said, statusFrame } from '../e2e/status.mjs';
import { BLACK_BOXES, BLOCKERS, CAUSES, FROM_OPERATOR, GUARD_MODES, MOTIONS, type Motion } from './generated/kinds';
import { type GuardView, NEEDS, bitsOf, blackBoxWords, causeWords, needWords } from './guard';
import { Telemetry } from './message/telemetry';
import { readTelemetry } from './reading';
import { BadMessage } from './wire';

function telemetryMessage(frame: Uint8Array | null): ArrayBuffer {
  const builder = new Builder(512);
  const status = frame === null ? 0 : Telemetry.createStatusVector(builder, frame);
  Telemetry.startTelemetry(builder);
  Telemetry.addStatus(builder, status);
  Telemetry.finishTelemetryBuffer(builder, Telemetry.endTelemetry(builder));
  const message = new Uint8Array(1 + builder.asUint8Array().length);
  message[0] = FROM_OPERATOR.telemetry;
  message.set(builder.asUint8Array(), 1);
  return message.buffer;
}

const read = (said: Said): GuardView => readTelemetry(telemetryMessage(statusFrame(said))).guard!;

describe('names', () => {
  it('all have a text', () => {
    for (const motion of MOTIONS) for (const cause of CAUSES) expect(causeWords({ cause, value: 1, limit: 2, motion })).not.toBe('');
    for (const blocker of BLOCKERS) expect(NEEDS[blocker]).not.toBe('');
    expect(needWords([])).toBe('');
    expect(needWords(['throttle pressed', 'moving'])).toBe('Release throttle, keys and sticks; the machine must stand still.');
  });
});

describe('a speed', () => {
  it('is in km/h for a car and in m/s for other machines, with one decimal below 10', () => {
    const told = (motion: Motion, value: number) => causeWords({ cause: 'overspeed', value, limit: 1.5, motion });
    expect(told('ackermann', 10)).toBe('Too fast: 36 km/h (limit 5 km/h)');
    expect([told('differential', 1.94), told('omni', 12.4)]).toEqual(['Too fast: 1.9 m/s (limit 1.5 m/s)', 'Too fast: 12 m/s (limit 1.5 m/s)']);
  });
});

describe('the black box', () => {
  it('has a text for every fault, and none while it records', () => {
    const silent = BLACK_BOXES.filter((blackBox) => blackBoxWords(blackBox) === '');
    expect(silent).toEqual(['absent', 'records']);
    expect(blackBoxWords('disk full')).toBe('The black box does not record: disk full');
  });
});

describe('the guard\'s state', () => {
  it('is read with everything that a person needs to know', () => {
    const guard = read({
      mode: GUARD_MODES.indexOf('held'), cause: CAUSES.indexOf('emergency stop'), stop: 12, latched: true, emergencyStop: 0xfffffff0,
      report: { console: 0xfedc_ba98_7654_3211n, number: 5, outcome: 2 + BLOCKERS.indexOf('throttle pressed') },
      blockers: bitsOf(BLOCKERS, ['latched', 'not named']), holder: 0xfedc_ba98_7654_3211n, loopAgeMs: 180, speedBound: 7.5,
      countdown: { cause: CAUSES.indexOf('command timeout'), leftMs: 90 }, notices: 1, signals: 0b10_0000,
      blackBox: BLACK_BOXES.indexOf('disk full'), braking: [2, 3, 7],
    });
    expect(guard).toMatchObject({
      mode: 'held', cause: 'emergency stop', stop: 12, latched: true, emergencyStop: 0xfffffff0,
      report: { console: 0xfedc_ba98_7654_3211n, number: 5, outcome: 'throttle pressed' },
      blockers: ['latched', 'not named'], holder: 0xfedc_ba98_7654_3211n, loopAgeMs: 180, speedBoundMps: 7.5,
      countdown: { cause: 'command timeout', leftMs: 90 }, parkingBrake: true, actions: 0b10_0000,
      blackBox: 'disk full', braking: { begin: 2, end: 3, jerk: 7 },
    });
  });

  it('reads unknown values as null, and a done action as done', () => {
    const guard = read({ report: { console: 1n, number: 5, outcome: 1 } });
    expect(guard).toMatchObject({ loopAgeMs: null, countdown: null, report: { outcome: 'done' }, parkingBrake: false });
    expect(guard).toMatchObject({ blackBox: 'absent', braking: null });
  });

  it('is null if no guard reports', () => expect(readTelemetry(telemetryMessage(null)).guard).toBeNull());

  it('is malformed with an unknown number', () => {
    expect(() => readTelemetry(telemetryMessage(statusFrame({ cause: 200 })))).toThrow(BadMessage);
  });
});
