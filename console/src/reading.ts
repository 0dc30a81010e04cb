/**
 * Copies the FlatBuffers into plain values and throws on malformed bytes. The page sees exactly
 * what these functions return: a new field needs a line here.
 */
import type { Budget } from './message/budget';
import type { ChannelStats } from './message/channel-stats';
import type { Delays } from './message/delays';
import type { DropCount } from './message/drop-count';
import { End } from './message/end';
import { Fault } from './message/fault';
import { Gear } from './message/gear';
import type { GuardState } from './message/guard-state';
import { LinkState } from './message/link-state';
import type { LinkStats } from './message/link-stats';
import { OperatorStatus } from './message/operator-status';
import { RateCause } from './message/rate-cause';
import type { RateControl } from './message/rate-control';
import { SessionState } from './message/session-state';
import { Snapshot } from './message/snapshot';
import { Telemetry } from './message/telemetry';
import type { Value } from './message/value';
import {
  BLACK_BOXES, BLOCKERS, CAUSES, type Deceleration, GUARD_MODES, type GuardView, SIGHTS, SIGNALS, membersOf,
} from './guard';
import { LINK_COUNTS, UNIT_COUNTS, readCounts } from './stats';
import { BadMessage, flatBuffer } from './wire';

/**
 * Telemetry of the vehicle. Motion and gear are `null` while the machine is unreachable; the speed
 * also when the machine does not know it.
 */
export type TelemetryView = ReturnType<typeof readTelemetry>;
export type StatusView = ReturnType<typeof readStatus>;
/** Observations of one end. */
export type SnapshotView = ReturnType<typeof readSnapshot>;
/**
 * One link as one end observes it; `out` is the direction in which that end sends. `null` means
 * unknown. Shares are 0 to 1.
 */
export type LinkView = ReturnType<typeof readLink>;
/** Percentiles of the delays of the last ten seconds, in ms. */
export type DelaysView = NonNullable<ReturnType<typeof readDelays>>;
/**
 * Units of one channel as one end observes them. `lateOrLost` is a share of the last ten seconds,
 * `null` if no unit was due.
 */
export type ChannelView = ReturnType<typeof readChannel>;
/** A named value of a process. Its unit is `s`, `bit/s`, `V` and so on; empty for a bare number. */
export type ValueView = ReturnType<typeof readValue>;
/** A counted drop. */
export type DropView = ReturnType<typeof readDrop>;

// Upper bounds against a corrupt length; senders stay below them.
const LINKS_MAX = 64;
const CHANNELS_MAX = 64;
const VALUES_MAX = 128;
const DROPS_MAX = 512;
const FAULTS_MAX = 9;
const ENDLESS_MS = 65_535;
// The guard stops the machine long before this. A speed that is older no longer says how fast it
// moves.
const MACHINE_AGE_MAX_MS = 300;
/**
 * Optional numbers that the machine reports, in the order and with the units of `told!` in
 * crates/guard/src/machine.rs.
 */
const TOLD = ['accelerationAlong', 'accelerationAcross', 'charge'] as const;
/** The reported numbers; `null` for unknown ones. */
export type ToldView = Record<(typeof TOLD)[number], number | null>;
/** Bit of the parking brake in a machine's notices. */
const PARKING_BRAKE = 1;

export function readTelemetry(message: ArrayBuffer) {
  const telemetry = Telemetry.getRootAsTelemetry(flatBuffer(message, Telemetry.bufferHasIdentifier));
  const motion = telemetry.motion();
  if (motion === null) throw new BadMessage('telemetry without motion');
  const faults = readFaults(telemetry);
  const heard = <T>(told: T): T | null => (faults.includes(Fault.Unreachable) ? null : told);
  return {
    sequence: Number(telemetry.sequence()),
    speedMps: faults.includes(Fault.Speed) ? null : heard(finite(motion.speed())),
    steeringAngleRad: heard(finite(motion.steeringAngle())),
    throttle: heard(finite(motion.throttle())),
    brake: heard(finite(motion.brake())),
    modeReason: telemetry.modeReason() ?? '',
    /** Fault of the picture source; empty if there is none. */
    sourceTrouble: telemetry.sourceTrouble() ?? '',
    gear: heard(known(Gear, telemetry.gear())),
    guard: readGuard(telemetry.guard()),
    faults,
    sight: membersOf(SIGHTS, telemetry.sight()),
    told: readTold((index) => heard(index < telemetry.toldLength() ? telemetry.told(index) : null)),
  };
}

/**
 * Returns the machine's faults. A machine whose state is old, or that no guard reports, counts as
 * unreachable.
 */
function readFaults(telemetry: Telemetry): Fault[] {
  const faults = list(telemetry.faultsLength(), FAULTS_MAX, (index) => {
    const fault = telemetry.faults(index) ?? Fault.Other;
    return fault in Fault ? fault : Fault.Other;
  });
  const ageMs = telemetry.guard()?.machineAgeMs() ?? ENDLESS_MS;
  return ageMs <= MACHINE_AGE_MAX_MS || faults.includes(Fault.Unreachable) ? faults : [Fault.Unreachable, ...faults];
}

/** Reads the reported numbers; those that a newer vehicle adds beyond the list are ignored. */
function readTold(told: (index: number) => number | null): ToldView {
  const known = (number: number | null) => (Number.isFinite(number) ? number : null);
  return Object.fromEntries(TOLD.map((name, index) => [name, known(told(index))])) as ToldView;
}

function readGuard(state: GuardState | null): GuardView | null {
  if (state === null) return null;
  const report = state.answer();
  return {
    mode: numbered(GUARD_MODES, state.mode()),
    cause: numbered(CAUSES, state.cause()),
    value: state.value(),
    limit: state.limit(),
    stop: state.stop(),
    latched: state.latched(),
    emergencyStop: state.emergencyStop(),
    report: report === null ? null : {
      console: report.console(),
      number: report.number(),
      outcome: report.outcome() === 0 ? 'done' : numbered(BLOCKERS, report.outcome() - 1),
    },
    blockers: membersOf(BLOCKERS, state.blockers()),
    holder: state.holder(),
    loopAgeMs: orEndless(state.loopAgeMs()),
    speedBoundMps: state.speedBound(),
    countdown: state.countdownMs() === ENDLESS_MS ? null : {
      cause: numbered(CAUSES, state.countdownCause()),
      leftMs: state.countdownMs(),
    },
    blackBox: numbered(BLACK_BOXES, state.blackBox()),
    braking: readBraking(state.budget()),
    signals: membersOf(SIGNALS, state.signals()),
    parkingBrake: (state.notices() & PARKING_BRAKE) !== 0,
  };
}

function readBraking(budget: Budget | null): Deceleration | null {
  if (budget === null) return null;
  const braking = {
    begin: finite(budget.decelerationBegin()), end: finite(budget.deceleration()), jerk: finite(budget.jerk()),
  };
  return Object.values(braking).every((number) => number > 0) ? braking : null;
}

export function readStatus(message: ArrayBuffer) {
  const status = OperatorStatus.getRootAsOperatorStatus(
    flatBuffer(message, OperatorStatus.bufferHasIdentifier));
  const clock = status.clock();
  return {
    vehicleName: status.vehicleName() ?? '',
    sessionState: known(SessionState, status.sessionState()),
    sessionReason: status.sessionReason() ?? '',
    clock: clock === null ? null : {
      offsetMs: Number(clock.offsetNs()) / 1e6,
      errorMs: Number(clock.errorNs()) / 1e6,
    },
    emulatedLinks: list(status.emulatedLinksLength(), LINKS_MAX, (index) => {
      const link = present(status.emulatedLinks(index));
      return { name: link.name() ?? '', cut: link.cut() };
    }),
  };
}

/** Reads a snapshot; a missing part is read as empty. */
export function readSnapshot(message: ArrayBuffer) {
  const snapshot = Snapshot.getRootAsSnapshot(flatBuffer(message, Snapshot.bufferHasIdentifier));
  const [session, process] = [snapshot.session(), snapshot.process()];
  return {
    end: known(End, snapshot.end()),
    links: list(session?.linksLength() ?? 0, LINKS_MAX, (index) => readLink(session!.links(index), session!.rates(index))),
    channels: list(session?.channelsLength() ?? 0, CHANNELS_MAX, (index) => readChannel(session!.channels(index))),
    values: list(process?.valuesLength() ?? 0, VALUES_MAX, (index) => readValue(process!.values(index))),
    drops: [
      ...list(process?.dropsLength() ?? 0, DROPS_MAX, (index) => readDrop(process!.drops(index))),
      ...list(session?.dropsLength() ?? 0, DROPS_MAX, (index) => readDrop(session!.drops(index))),
    ],
  };
}

function readLink(stats: LinkStats | null, rate: RateControl | null) {
  const link = present(stats);
  return {
    link: link.link(),
    name: link.name() ?? '',
    state: known(LinkState, link.state()),
    datagramBytes: link.datagramBytes(),
    budgetBps: Number(link.budgetBps()),
    grantedBps: Number(link.grantedBps()),
    sentBps: Number(link.sentBps()),
    receivedBps: Number(link.receivedBps()),
    rttMs: orUnknown(link.rttMs()),
    owdMs: orUnknown(link.owdMs()),
    jitterMs: orUnknown(link.jitterMs()),
    lossOut: orUnknown(link.lossOut()),
    lossIn: orUnknown(link.lossIn()),
    owdOut: readDelays(link.owdOut()),
    owdIn: readDelays(link.owdIn()),
    queuedBytes: link.queuedBytes(),
    inFlightBytes: link.inFlightBytes(),
    relayed: link.relayed(),
    detourMs: orUnknown(link.detourMs()),
    control: rate === null ? null : {
      deliveredBps: rate.delivered() * 10_000, queueingMs: rate.queueing() / 10, cause: known(RateCause, rate.cause()),
    },
    counts: readCounts(link, LINK_COUNTS),
  };
}

function readDelays(delays: Delays | null) {
  if (delays === null) return null;
  return { p50: finite(delays.p50()), p95: finite(delays.p95()), p99: finite(delays.p99()) };
}

function readChannel(stats: ChannelStats | null) {
  const channel = present(stats);
  return {
    channel: channel.channel(),
    name: channel.name() ?? '',
    lateOrLost: orUnknown(channel.lateOrLost()),
    counts: readCounts(channel, UNIT_COUNTS),
  };
}

function readValue(told: Value | null) {
  const value = present(told);
  return { name: value.name() ?? '', number: finite(value.number()), unit: value.unit() ?? '', total: value.total() };
}

function readDrop(told: DropCount | null) {
  const drop = present(told);
  return { name: drop.name() ?? '', count: Number(drop.count()) };
}

function list<T>(length: number, bound: number, read: (index: number) => T): T[] {
  if (length > bound) throw new BadMessage(`vector of ${length}`);
  return Array.from({ length }, (_, index) => read(index));
}

function present<T>(value: T | null): T {
  if (value === null) throw new BadMessage('missing table');
  return value;
}

function finite(value: number): number {
  if (!Number.isFinite(value)) throw new BadMessage('number is not finite');
  return value;
}

/** Returns `null` for the largest 16-bit number, which stands for an unknown or endless time. */
function orEndless(ms: number): number | null {
  return ms === ENDLESS_MS ? null : ms;
}

function numbered<Name extends string>(names: readonly Name[], number: number): Name {
  const name = names[number];
  if (name === undefined) throw new BadMessage(`no ${number} among ${names.length}`);
  return name;
}

function orUnknown(value: number): number | null {
  return finite(value) < 0 ? null : value;
}

function known<E extends number>(names: Record<number, string>, value: E): E {
  if (!(value in names)) throw new BadMessage(`enum value ${value}`);
  return value;
}
