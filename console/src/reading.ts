/**
 * Copies the FlatBuffers into plain values and throws on malformed bytes. The page sees exactly
 * what these functions return: a new field needs a line here.
 */
import type { ChannelStats } from './message/channel-stats';
import type { Delays } from './message/delays';
import type { DropCount } from './message/drop-count';
import { End } from './message/end';
import { Gear } from './message/gear';
import { LinkState } from './message/link-state';
import type { LinkStats } from './message/link-stats';
import { OperatorStatus } from './message/operator-status';
import type { RateControl } from './message/rate-control';
import { SessionState } from './message/session-state';
import { Snapshot } from './message/snapshot';
import { Telemetry } from './message/telemetry';
import type { Value } from './message/value';
import { type Fault, MACHINE_AGE_MAX_MS, RATE_CAUSES, SIGHTS, TOLD } from './generated/kinds';
import { type Deceleration, type GuardView, membersOf } from './guard';
import type { Bounds } from './twist';
import { type MachineFrame, type StatusFrame, type Told, readStatusFrame } from './status-frame';
import { LINK_COUNTS, UNIT_COUNTS, readCounts } from './stats';
import { BadMessage, flatBuffer } from './wire';

/**
 * Telemetry of the vehicle. Motion and gear are `null` while the machine is unreachable; the speed
 * also when the machine does not know it.
 */
export type TelemetryView = ReturnType<typeof readTelemetry>;
export type StatusView = ReturnType<typeof readStatus>;
/** Statistics of one end, vehicle or operator. */
export type SnapshotView = ReturnType<typeof readSnapshot>;
/**
 * One link as one end observes it. `out` is the direction in which that end sends, `in` the other.
 * `null` means unknown; shares are 0 to 1.
 */
export type LinkView = ReturnType<typeof readLink>;
/** Percentiles of the delays of the last ten seconds, in ms. */
export type DelaysView = NonNullable<ReturnType<typeof readDelays>>;
/**
 * Units of one channel as one end observes them. `lateOrLost` is the share of the units due in the
 * last ten seconds; `null` if none was due.
 */
export type ChannelView = ReturnType<typeof readChannel>;
/** A named value of a process. Its unit is `s`, `bit/s`, `V` and so on; empty for a bare number. */
export type ValueView = ReturnType<typeof readValue>;
/** A kind of drop, with its count. */
export type DropView = ReturnType<typeof readDrop>;

// Largest accepted numbers of entries, against a corrupt length. Senders stay below them.
const LINKS_MAX = 64;
const CHANNELS_MAX = 64;
const VALUES_MAX = 128;
const DROPS_MAX = 512;
const NOTHING_TOLD = Object.fromEntries(TOLD.map(({ key }) => [key, null])) as Told;

export function readTelemetry(message: ArrayBuffer) {
  const telemetry = Telemetry.getRootAsTelemetry(flatBuffer(message, Telemetry.bufferHasIdentifier));
  const frame = readFrame(telemetry.statusArray());
  const faults = faultsOf(frame?.machine ?? null);
  // Of a machine out of reach nothing is known, nor of its actuators.
  const reached = faults.includes('unreachable') ? null : frame;
  const machine = reached?.machine ?? null;
  return {
    sequence: Number(telemetry.sequence()),
    speedMps: faults.includes('speed') ? null : machine?.speedMps ?? null,
    sidewaysMps: machine?.sidewaysMps ?? null,
    yawRate: machine?.yawRate ?? null,
    steeringAngleRad: machine?.steeringAngleRad ?? null,
    throttle: reached?.throttle ?? null,
    brake: reached?.brake ?? null,
    /**
     * Reason why nobody drives that the guard's status does not contain; empty if there is none.
     */
    modeReason: telemetry.modeReason() ?? '',
    /** Fault of the picture source; empty if there is none. */
    sourceTrouble: telemetry.sourceTrouble() ?? '',
    gear: machine === null ? null : known(Gear, machine.gear as Gear),
    guard: frame === null ? null : guardOf(frame),
    faults,
    sight: membersOf(SIGHTS, telemetry.sight()),
    told: machine?.told ?? NOTHING_TOLD,
  };
}

/**
 * Reads the guard's status; `null` while the guard is silent. Throws `BadMessage` for invalid
 * bytes.
 */
function readFrame(bytes: Uint8Array | null): StatusFrame | null {
  if (bytes === null) return null;
  const frame = readStatusFrame(bytes);
  if (frame === null) throw new BadMessage('no status frame');
  return frame;
}

/**
 * Returns the machine's faults; an unknown speed is one. A machine counts as unreachable if its
 * state is old, or if no guard reports it.
 */
function faultsOf(machine: MachineFrame | null): Fault[] {
  if (machine === null) return ['unreachable'];
  const told = new Set(machine.faults);
  if (machine.speedMps === null) told.add('speed');
  const old = machine.ageMs >= MACHINE_AGE_MAX_MS && !told.has('unreachable');
  return old ? ['unreachable', ...told] : [...told];
}

function guardOf(frame: StatusFrame): GuardView {
  return {
    mode: frame.mode,
    cause: frame.cause,
    value: frame.value,
    limit: frame.limit,
    stop: frame.stop,
    latched: frame.latched,
    emergencyStop: frame.emergencyStop,
    report: frame.answer,
    blockers: frame.blockers,
    holder: frame.holder,
    loopAgeMs: frame.loopAgeMs,
    motion: frame.motion,
    speedBoundMps: frame.speedBoundMps,
    bounds: boundsOf(frame),
    twist: frame.twist,
    countdown: frame.countdown,
    blackBox: frame.blackBox,
    braking: brakingOf(frame),
    setPoints: frame.setPoints,
    axes: frame.machine?.axes ?? [],
    actions: frame.machine?.actions ?? 0,
    description: frame.machine?.description ?? null,
    parkingBrake: frame.machine?.notices.includes('parking brake') ?? false,
  };
}

/**
 * Returns the limits now. Backwards, the lower of the speed bound and the guard's setting applies.
 */
function boundsOf({ speedBoundMps, sidewaysBoundMps, yawRateBound, reverseMaxMps }: StatusFrame): Bounds {
  const bound = (value: number): number => Math.max(0, value);
  return { forward: bound(speedBoundMps), back: bound(Math.min(speedBoundMps, reverseMaxMps)), sideways: bound(sidewaysBoundMps), yawRate: bound(yawRateBound) };
}

/** Returns the deceleration of a stop by the guard; `null` if one of its values is not reported. */
function brakingOf({ decelerationBegin, deceleration, jerk, yawDeceleration }: StatusFrame): Deceleration | null {
  if (![decelerationBegin, deceleration, jerk].every((number) => number > 0)) return null;
  return { begin: decelerationBegin, end: deceleration, jerk, yaw: yawDeceleration > 0 ? yawDeceleration : null };
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
      deliveredBps: rate.delivered() * 10_000, queueingMs: rate.queueing() / 10,
      /** Empty if this page is older than the vehicle and does not know the cause. */
      cause: RATE_CAUSES[rate.cause()]?.words ?? '',
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

/** Returns `null` for a negative value, by which messages say that it is unknown. */
function orUnknown(value: number): number | null {
  return finite(value) < 0 ? null : value;
}

function known<E extends number>(names: Record<number, string>, value: E): E {
  if (!(value in names)) throw new BadMessage(`enum value ${value}`);
  return value;
}
