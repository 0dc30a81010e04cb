/** What the engine (worker) and the page tell each other; all plain, cloneable values. */
import type { End } from './message/end';
import type { Fault } from './message/fault';
import type { Gear } from './message/gear';
import type { LinkState } from './message/link-state';
import type { Mode } from './message/mode';
import type { SessionState } from './message/session-state';
import type { LinkCount, UnitCount } from './stats';
import type { Hello } from './wire';

/** What the person wants of the car now. */
export interface Controlled {
  /** -1 to 1, left positive. */
  steering: number;
  /** 0 to 1. */
  throttle: number;
  /** 0 to 1. */
  brake: number;
  gear: Gear;
  emergencyStop: boolean;
}

/** What half, 95 and 99 of a hundred delays of the last ten seconds do not exceed, ms. */
export interface DelaysView {
  p50: number;
  p95: number;
  p99: number;
}

/** One link as one end observes it; `out` is what that end sends. Null: not known. */
export interface LinkView {
  link: number;
  name: string;
  state: LinkState;
  datagramBytes: number;
  budgetBps: number;
  grantedBps: number;
  sentBps: number;
  receivedBps: number;
  rttMs: number | null;
  owdMs: number | null;
  jitterMs: number | null;
  /** 0 to 1. */
  lossOut: number | null;
  lossIn: number | null;
  owdOut: DelaysView | null;
  owdIn: DelaysView | null;
  queuedBytes: number;
  inFlightBytes: number;
  counts: Record<LinkCount, number>;
}

/** Units of one channel as one end observes them. */
export interface ChannelView {
  channel: number;
  name: string;
  /** Share of the last ten seconds, 0 to 1; null: none came due. */
  lateOrLost: number | null;
  counts: Record<UnitCount, number>;
}

export interface DropView {
  name: string;
  count: number;
}

/** A value that a process tells by name. */
export interface ValueView {
  name: string;
  number: number;
  /** `s`, `bit/s`, `V`; empty: a bare number. */
  unit: string;
  total: boolean;
}

/** What one end observes. */
export interface SnapshotView {
  end: End;
  links: LinkView[];
  channels: ChannelView[];
  values: ValueView[];
  /** Those that have happened. */
  drops: DropView[];
}

export interface TelemetryView {
  sequence: number;
  speedMps: number;
  steeringAngleRad: number;
  throttle: number;
  brake: number;
  mode: Mode;
  modeReason: string;
  gear: Gear;
  faults: Fault[];
}

export interface StatusView {
  vehicleName: string;
  sessionState: SessionState;
  sessionReason: string;
  clock: { offsetMs: number; errorMs: number } | null;
  emulatedLinks: { name: string; cut: boolean }[];
}

/** Milliseconds from a strip's capture to its drawing on the canvas, over the window. */
export interface LatencyView {
  p50: number;
  p95: number;
  p99: number;
  worst: number;
  count: number;
}

/** What one stage of a slice's way takes, ms. */
export interface StageView {
  name: string;
  p50: number;
  p95: number;
  p99: number;
}

/** How the browser's side of the video fares. */
export interface VideoView {
  /** Null while nothing was drawn in the window or the clock is not known. */
  latency: LatencyView | null;
  /** Pictures of which all strips were drawn, per second. */
  pictureRate: number;
  stripRate: number;
  /** Frame decimation: every n-th picture is asked for. */
  pictureInterval: number;
  bitrateBps: number;
  /** Mean time of one drawImage call, ms. */
  drawMs: number;
  /** Where the latency comes from, in the order of the way; empty while nothing is known. */
  stages: StageView[];
  /** The largest latency since the page was opened, ms. */
  worstEverMs: number | null;
  /** Value of the newest in-picture stamp and its age when drawn. */
  stamp: { value: number; latencyMs: number | null } | null;
  clock: { rttMs: number; offsetMs: number } | null;
  drops: DropView[];
}

export type Connection =
  | { state: 'connecting'; attempt: number }
  | { state: 'open' }
  | { state: 'waiting'; attempt: number; retryInMs: number; reason: string }
  | { state: 'taken-over' };

export type EngineReport =
  | { kind: 'tick' }
  | { kind: 'connection'; connection: Connection }
  | { kind: 'hello'; hello: Hello }
  | { kind: 'telemetry'; telemetry: TelemetryView }
  | { kind: 'status'; status: StatusView }
  | { kind: 'snapshot'; snapshot: SnapshotView }
  | { kind: 'video'; video: VideoView };

export type PageRequest =
  | { kind: 'start'; address: string; canvas: OffscreenCanvas }
  | { kind: 'command'; command: Controlled }
  | { kind: 'link'; link: number; cut: boolean }
  | { kind: 'reconnect' };
