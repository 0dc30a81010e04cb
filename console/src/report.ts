/** Messages between the engine (a worker) and the page; all are plain, cloneable values. */
import type { DropView, SnapshotView, StatusView, TelemetryView } from './reading';
import type { Description } from './declared';
import type { Readings } from './description';
import type { Demand, FleetView, Hello, Standing, TopicView } from './wire';

export type {
  ChannelView, DelaysView, DropView, LinkView, SnapshotView, StatusView, TelemetryView, ValueView,
} from './reading';
export type { Controlled, Demand, FleetView, TopicView, VehicleView } from './wire';

/**
 * Percentiles of the time in ms from a strip's capture to its drawing on the canvas, over the last
 * ten seconds.
 */
export interface LatencyView {
  p50: number;
  p95: number;
  p99: number;
  worst: number;
  count: number;
}

/** Percentiles of the time in ms that one stage took for a slice, over the last ten seconds. */
export interface StageView {
  name: string;
  p50: number;
  p95: number;
  p99: number;
}

/** The newest picture that a person could see here. */
export interface SeenView {
  /** Guard's tick in the picture's stamp; 0 if it has none. */
  tick: number;
  picture: number;
  /**
   * Capture time on this page's clock; `null` while the operator's clock is unknown, -Infinity if
   * the capture time is unknown.
   */
  capturedAtMs: number | null;
}

/** Statistics of the video in this browser. */
export interface VideoView {
  /** `null` if nothing was drawn in the window or the clock is unknown. */
  latency: LatencyView | null;
  /** Pictures per second of which all strips were drawn. */
  pictureRate: number;
  stripRate: number;
  /** Frame decimation: every n-th picture is requested. */
  pictureInterval: number;
  bitrateBps: number;
  /** Mean duration of drawing a strip, in ms. */
  drawMs: number;
  /** Stages of the latency, in order from the camera; empty while nothing is known. */
  stages: StageView[];
  /** Largest latency in ms since the page was opened; `null` before the first. */
  worstEverMs: number | null;
  /** Newest in-picture stamp, and its age when it was drawn; `null` if the picture has none. */
  stamp: { value: number; latencyMs: number | null } | null;
  /** Operator's clock minus this page's, and the round trip that measured it; `null` if unknown. */
  clock: { rttMs: number; offsetMs: number } | null;
  drops: DropView[];
}

export type Connection =
  | { state: 'connecting'; attempt: number }
  | { state: 'open' }
  | { state: 'waiting'; attempt: number; retryInMs: number; reason: string }
  /** The operator's process does not admit this browser any more. */
  | { state: 'not-admitted' };

export type EngineReport =
  | { kind: 'tick'; seen: SeenView | null }
  | { kind: 'connection'; connection: Connection }
  | { kind: 'hello'; hello: Hello; /** Why its picture is not shown; `null` if it is shown. */ refusal: string | null }
  | { kind: 'standing'; standing: Standing }
  | { kind: 'telemetry'; telemetry: TelemetryView }
  | { kind: 'status'; status: StatusView }
  | { kind: 'snapshot'; snapshot: SnapshotView }
  | { kind: 'description'; description: Description }
  | { kind: 'readings'; readings: Readings }
  | { kind: 'topics'; topics: TopicView[] }
  | { kind: 'fleet'; fleet: FleetView }
  | { kind: 'video'; video: VideoView };

export type PageRequest =
  | { kind: 'start'; address: string; session: string; canvas: OffscreenCanvas }
  | { kind: 'command'; command: Demand }
  | { kind: 'visible'; visible: boolean }
  | { kind: 'link'; link: number; cut: boolean }
  /** Request of this console to drive, or the withdrawal of that request. */
  | { kind: 'ask'; asks: boolean }
  | { kind: 'answer'; request: number; agrees: boolean }
  | { kind: 'pick'; vehicle: string }
  | { kind: 'leave' }
  | { kind: 'reconnect' };
