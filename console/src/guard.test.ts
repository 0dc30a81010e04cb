import { Builder } from 'flatbuffers';
import { describe, expect, it } from 'vitest';
import {
  BLACK_BOXES, BLOCKERS, CAUSES, GUARD_MODES, type GuardView, NEEDS, blackBoxWords, causeWords, needWords,
} from './guard';
import { ActAnswer } from './message/act-answer';
import { BlackBox } from './message/black-box';
import { Blocker } from './message/blocker';
import { Budget } from './message/budget';
import { Cause } from './message/cause';
import { GuardMode } from './message/guard-mode';
import { GuardState } from './message/guard-state';
import { Motion } from './message/motion';
import { Telemetry } from './message/telemetry';
import { readTelemetry } from './reading';
import { BadMessage, FROM_OPERATOR } from './wire';

function telemetryMessage(add: ((builder: Builder) => void) | null): ArrayBuffer {
  const builder = new Builder(512);
  const reason = builder.createString('');
  let guard = 0;
  if (add !== null) {
    GuardState.startGuardState(builder);
    add(builder);
    guard = GuardState.endGuardState(builder);
  }
  Telemetry.startTelemetry(builder);
  Telemetry.addModeReason(builder, reason);
  Telemetry.addMotion(builder, Motion.createMotion(builder, 1, 0, 0, 0, 0, 0, 0));
  if (add !== null) Telemetry.addGuard(builder, guard);
  Telemetry.finishTelemetryBuffer(builder, Telemetry.endTelemetry(builder));
  const message = new Uint8Array(1 + builder.asUint8Array().length);
  message[0] = FROM_OPERATOR.telemetry;
  message.set(builder.asUint8Array(), 1);
  return message.buffer;
}

const read = (add: (builder: Builder) => void): GuardView => readTelemetry(telemetryMessage(add)).guard!;

describe('names', () => {
  const plain = (name: string): string => name.toLowerCase().replace(/[^a-z]/g, '');
  const numbersOf = (members: object): number => Object.values(members).filter((value) => typeof value === 'number').length;

  it('match the numbers of the wire in count', () => {
    expect(GUARD_MODES.map(plain)).toEqual(GUARD_MODES.map((_, number) => plain(GuardMode[number]!)));
    expect(BLACK_BOXES.map(plain)).toEqual(BLACK_BOXES.map((_, number) => plain(BlackBox[number]!)));
    expect(numbersOf(BlackBox)).toBe(BLACK_BOXES.length);
    expect([CAUSES.length, BLOCKERS.length, GUARD_MODES.length]).toEqual([Cause, Blocker, GuardMode].map(numbersOf));
  });

  it('match the numbers of the wire in meaning', () => {
    expect([Cause.PictureAge, Cause.EmergencyStop, Cause.DeadManReleased, Cause.Parked, Cause.Standstill, Cause.Reset]
      .map((cause) => CAUSES[cause]))
      .toEqual(['picture age', 'emergency stop', 'dead-man released', 'parked', 'standstill', 'reset']);
    expect([Blocker.Latched, Blocker.ThrottlePressed, Blocker.DeadMan, Blocker.NotNamed].map((blocker) => BLOCKERS[blocker]))
      .toEqual(['latched', 'throttle pressed', 'dead-man', 'not named']);
  });

  it('all have a text', () => {
    for (const cause of CAUSES) expect(causeWords({ cause, value: 1, limit: 2 })).not.toBe('');
    for (const blocker of BLOCKERS) expect(NEEDS[blocker]).not.toBe('');
    expect(needWords([])).toBe('');
    expect(needWords(['throttle pressed', 'moving'])).toBe('Release the throttle; the machine must stand still.');
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
    const guard = read((builder) => {
      GuardState.addMode(builder, GuardMode.Held);
      GuardState.addCause(builder, Cause.EmergencyStop);
      GuardState.addStop(builder, 12);
      GuardState.addLatched(builder, true);
      GuardState.addEmergencyStop(builder, 0xfffffff0);
      GuardState.addAnswer(builder, ActAnswer.createActAnswer(builder, 0xfedc_ba98_7654_3211n, 5, 1 + Blocker.ThrottlePressed));
      GuardState.addBlockers(builder, (1 << Blocker.Latched) | (1 << Blocker.NotNamed));
      GuardState.addHolder(builder, 0xfedc_ba98_7654_3211n);
      GuardState.addLoopAgeMs(builder, 180);
      GuardState.addSpeedBound(builder, 7.5);
      GuardState.addCountdownCause(builder, Cause.CommandTimeout);
      GuardState.addCountdownMs(builder, 90);
      GuardState.addNotices(builder, 1);
      GuardState.addSignals(builder, 0b10_0000);
      GuardState.addBlackBox(builder, BlackBox.DiskFull);
      GuardState.addBudget(builder, Budget.createBudget(builder, 200, 250, 2, 3, 7));
    });
    expect(guard).toMatchObject({
      mode: 'held', cause: 'emergency stop', stop: 12, latched: true, emergencyStop: 0xfffffff0,
      report: { console: 0xfedc_ba98_7654_3211n, number: 5, outcome: 'throttle pressed' },
      blockers: ['latched', 'not named'], loopAgeMs: 180, speedBoundMps: 7.5,
      countdown: { cause: 'command timeout', leftMs: 90 }, parkingBrake: true, signals: ['hazard'],
      blackBox: 'disk full', braking: { begin: 2, end: 3, jerk: 7 },
    });
  });

  it('reads unknown values as null, and a done action as done', () => {
    const guard = read((builder) => GuardState.addAnswer(builder, ActAnswer.createActAnswer(builder, 1n, 5, 0)));
    expect(guard).toMatchObject({ loopAgeMs: null, countdown: null, report: { outcome: 'done' }, parkingBrake: false });
    expect(guard).toMatchObject({ blackBox: 'absent', braking: null });
  });

  it('is null if no guard reports', () => expect(readTelemetry(telemetryMessage(null)).guard).toBeNull());

  it('is malformed with an unknown number', () => {
    const unknown = telemetryMessage((builder) => GuardState.addCause(builder, 200 as Cause));
    expect(() => readTelemetry(unknown)).toThrow(BadMessage);
  });
});
