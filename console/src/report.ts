/** What the engine (worker) and the page tell each other; all plain, cloneable values. */
import type { DropView, SnapshotView, StatusView, TelemetryView } from './reading';
import type { Demand, FleetView, Hello, Standing, TopicView } from './wire';

export type {
  ChannelView, DelaysView, DropView, LinkView, SnapshotView, StatusView, TelemetryView, ValueView,
} from './reading';
export type { Controlled, Demand, FleetView, TopicView, VehicleView } from './wire';

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

/** The newest picture that a person could see here. */
export interface SeenView {
  /** The guard's tick that it is stamped with; 0: none. */
  tick: number;
  picture: number;
  /** By this page's clock; null while the operator's is not known; -Infinity: when it was captured is not known. */
  capturedAtMs: number | null;
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
  /** The operator's process does not know this browser any more. */
  | { state: 'not-admitted' };

export type EngineReport =
  | { kind: 'tick'; seen: SeenView | null }
  | { kind: 'connection'; connection: Connection }
  | { kind: 'hello'; hello: Hello; /** Why its picture is not shown; null: it is. */ refusal: string | null }
  | { kind: 'standing'; standing: Standing }
  | { kind: 'telemetry'; telemetry: TelemetryView }
  | { kind: 'status'; status: StatusView }
  | { kind: 'snapshot'; snapshot: SnapshotView }
  | { kind: 'topics'; topics: TopicView[] }
  | { kind: 'fleet'; fleet: FleetView }
  | { kind: 'video'; video: VideoView };

export type PageRequest =
  | { kind: 'start'; address: string; session: string; canvas: OffscreenCanvas }
  | { kind: 'command'; command: Demand }
  | { kind: 'visible'; visible: boolean }
  | { kind: 'link'; link: number; cut: boolean }
  /** To drive, or to take that back. */
  | { kind: 'ask'; asks: boolean }
  | { kind: 'answer'; request: number; agrees: boolean }
  | { kind: 'pick'; vehicle: string }
  | { kind: 'leave' }
  | { kind: 'reconnect' };
