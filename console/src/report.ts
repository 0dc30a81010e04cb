/** What the engine (worker) and the page tell each other; all plain, cloneable values. */
import type { End } from './message/end';
import type { Fault } from './message/fault';
import type { Gear } from './message/gear';
import type { LinkState } from './message/link-state';
import type { Mode } from './message/mode';
import type { SessionState } from './message/session-state';
import type { UnitClass } from './message/unit-class';
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

export interface LinkView {
  link: number;
  name: string;
  state: LinkState;
  sendRateBps: number;
  receivedRateBps: number;
  /** Milliseconds; null: not known. */
  rttMs: number | null;
  owdMs: number | null;
  jitterMs: number | null;
  /** 0 to 1. */
  loss: number;
  packetsSent: number;
  packetsReceived: number;
  packetsLost: number;
}

/** What half, 95 and 99 of a hundred delays of the last ten seconds do not exceed, ms. */
export interface DelaysView {
  p50: number;
  p95: number;
  p99: number;
}

/** One link as one end counts it; `out` is what that end sends. */
export interface LinkSurveyView {
  link: number;
  state: LinkState;
  datagramBytes: number;
  budgetBps: number;
  grantedBps: number;
  sentBps: number;
  incomingBps: number;
  rttMs: number | null;
  owdOut: DelaysView | null;
  owdIn: DelaysView | null;
  /** 0 to 1. */
  lossOut: number;
  lossIn: number;
  queuedBytes: number;
  inFlightBytes: number;
  datagramsSent: number;
  datagramsReceived: number;
  /** Media packets. */
  packets: Record<PacketFate, number>;
}

export type PacketFate = 'given' | 'again' | 'dropped' | 'withdrawn' | 'sent' | 'inTime' | 'late' | 'lost';

/** Units of one class as one end counts them. */
export interface ClassSurveyView {
  class: UnitClass;
  units: Record<UnitFate, number>;
}

export type UnitFate = 'offered' | 'accepted' | 'refusedNoLink' | 'refusedInvalid' | 'refusedCongested'
  | 'heard' | 'delivered' | 'repaired' | 'missing' | 'incomplete' | 'late' | 'evicted' | 'malformed' | 'superseded';

export interface SurveyView {
  end: End;
  links: LinkSurveyView[];
  classes: ClassSurveyView[];
}

export interface TelemetryView {
  sequence: number;
  speedMps: number;
  steeringAngleRad: number;
  throttle: number;
  brake: number;
  mode: Mode;
  modeReason: string;
  commandAgeMs: number | null;
  pictureRate: number;
  videoBudgetBps: number;
  picturesCaptured: number;
  picturesDropped: number;
  slicesSent: number;
  slicesDropped: number;
  encodeMsP50: number;
  encodeMsP99: number;
  links: LinkView[];
  gear: Gear;
  faults: Fault[];
  /** What only this kind of machine knows. */
  extras: { name: string; value: number; unit: string }[];
}

export interface StatusView {
  vehicleName: string;
  sessionState: SessionState;
  sessionReason: string;
  links: LinkView[];
  unitsReceived: number;
  unitsLate: number;
  unitsLost: number;
  slicesShown: number;
  slicesSkipped: number;
  clock: { offsetMs: number; errorMs: number } | null;
  drops: { name: string; count: number }[];
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
  drops: { name: string; count: number }[];
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
  | { kind: 'survey'; survey: SurveyView }
  | { kind: 'video'; video: VideoView };

export type PageRequest =
  | { kind: 'start'; address: string; canvas: OffscreenCanvas }
  | { kind: 'command'; command: Controlled }
  | { kind: 'link'; link: number; cut: boolean }
  | { kind: 'reconnect' };
