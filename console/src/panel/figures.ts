import type { Fault } from '../generated/kinds';
import type { SnapshotView, StatusView, TelemetryView, ValueView, VideoView } from '../report';
import type { PictureFormat } from '../wire';
import { byId, setText, slug } from './element';
import { UNKNOWN, megabits, ms, percent, quantity } from './format';
import { Rows } from './rows';

/**
 * Names of the values shown among the figures, and the ids of their elements. All other values are
 * shown under Details.
 */
const PLACES: Readonly<Record<string, string>> = {
  'picture rate': 'capture-rate',
  'picture rate asked for': 'links-rate',
  'picture size asked for': 'links-size',
  'video budget': 'video-budget',
  'slices skipped': 'slices-skipped',
};
const VIDEO_CHANNEL = 'video';

/** Figures of the video: its budget, rate and losses. */
export class Figures {
  readonly #pictureRate = byId('picture-rate');
  readonly #rate = byId('video-rate');
  readonly #lateOrLost = byId('late-or-lost');

  /** Each argument is `null` if not live. */
  show(vehicle: SnapshotView | null, operator: SnapshotView | null): void {
    if (vehicle === null || operator === null) for (const place of Object.values(PLACES)) setText(byId(place), UNKNOWN);
    for (const value of [...(vehicle?.values ?? []), ...(operator?.values ?? [])]) {
      const place = PLACES[value.name];
      if (place !== undefined) setText(byId(place), quantity(value));
    }
    const video = operator?.channels.find(({ name }) => name === VIDEO_CHANNEL);
    setText(this.#lateOrLost, percent(video?.lateOrLost ?? null));
  }

  showVideo(video: VideoView | null): void {
    setText(this.#pictureRate, video === null ? UNKNOWN : pictureRate(video));
    setText(this.#rate, video === null ? UNKNOWN : megabits(video.bitrateBps));
  }
}

const FAULTS: Readonly<Record<Fault, string>> = {
  unreachable: 'the machine does not answer',
  refused: 'somebody else controls the machine',
  'emergency button': 'emergency button pressed',
  steering: 'steering',
  drive: 'drive',
  brake: 'brake',
  gear: 'gear',
  speed: 'speed unknown',
  other: 'see the machine\'s fault memory',
  description: 'it declares other axes or actions than before',
};

/** Describes the machine's faults; `none` if it has none. */
export function faultNames(faults: Fault[]): string {
  return faults.length === 0 ? 'none' : faults.map((fault) => FAULTS[fault]).join(', ');
}

/** Formats the rate of drawn pictures, and the frame decimation if there is any. */
function pictureRate({ pictureRate: drawn, pictureInterval }: VideoView): string {
  return pictureInterval === 1 ? drawn.toFixed(0) : `${drawn.toFixed(0)}, 1 in ${pictureInterval}`;
}

/** Returns the values that are not among the figures. */
export function detailsOf(snapshot: SnapshotView): ValueView[] {
  return snapshot.values.filter(({ name }) => PLACES[name] === undefined);
}

/**
 * Values of one end under Details. A value that this end no longer reports keeps its row, with a
 * dash.
 */
export class Told {
  readonly #texts = new Map<string, string>();

  /** Returns the text of each value by its name. `snapshot` is `null` if not live. */
  take(snapshot: SnapshotView | null): ReadonlyMap<string, string> {
    for (const name of this.#texts.keys()) this.#texts.set(name, UNKNOWN);
    for (const value of snapshot === null ? [] : detailsOf(snapshot)) this.#texts.set(value.name, quantity(value));
    return this.#texts;
  }
}

/** Details behind the figures: clocks, stamp, stages, and the named values of both ends. */
export class Details {
  readonly #card = byId<HTMLDetailsElement>('details');
  readonly #page = new Rows(byId('detail-rows'), 'This page');
  readonly #vehicle = new Rows(byId('detail-rows'), 'Vehicle');
  readonly #operator = new Rows(byId('detail-rows'), 'Operator');
  readonly #vehicleTold = new Told();
  readonly #operatorTold = new Told();

  /** Each argument is `null` if not live. */
  show(
    status: StatusView | null, telemetry: TelemetryView | null, vehicle: SnapshotView | null,
    operator: SnapshotView | null, video: VideoView | null,
  ): void {
    if (!this.#card.open) return;
    if (video !== null) this.#showVideo(video);
    this.#showMachine(telemetry);
    showTexts(this.#vehicle, this.#vehicleTold.take(vehicle), 'vehicle');
    showTexts(this.#operator, this.#operatorTold.take(operator), 'operator');
    this.#showClock(status?.clock ?? null);
  }

  showPicture({ width, height }: PictureFormat): void {
    this.#page.set('picture size', `${width} x ${height}`, 'picture-size');
  }

  #showVideo(video: VideoView): void {
    const { stamp, clock } = video;
    this.#page.set('stamp latency', stamp === null ? UNKNOWN : `${ms(stamp.latencyMs)} ms`, 'stamp-latency');
    this.#page.set('stamp', stamp === null ? UNKNOWN : String(stamp.value), 'stamp-value');
    this.#page.set('worst latency since the page was opened', `${ms(video.worstEverMs)} ms`, 'latency-worst-ever');
    this.#page.set('clock offset to the operator', clock === null ? UNKNOWN : `${ms(clock.offsetMs)} ± ${ms(clock.rttMs / 2)} ms`, 'console-clock');
    this.#page.set('strips drawn', `${video.stripRate.toFixed(0)} /s`, 'strip-rate');
    for (const { name, p50, p95, p99 } of video.stages) {
      this.#page.set(`${name}, p50 / p95 / p99`, `${p50.toFixed(1)} / ${p95.toFixed(1)} / ${p99.toFixed(1)} ms`, `stage-${name}`);
    }
    this.#page.set('draw call', `${video.drawMs.toFixed(2)} ms`, 'draw-time');
  }

  #showMachine(telemetry: TelemetryView | null): void {
    this.#vehicle.set('faults', telemetry === null ? UNKNOWN : faultNames(telemetry.faults), 'faults');
  }

  #showClock(clock: StatusView['clock']): void {
    this.#operator.set('vehicle clock', clock === null ? UNKNOWN : `${ms(clock.offsetMs)} ± ${ms(clock.errorMs)} ms`, 'vehicle-clock');
  }
}

function showTexts(rows: Rows, texts: ReadonlyMap<string, string>, end: string): void {
  for (const [name, text] of texts) rows.set(name, text, `${end}-${slug(name)}`);
}
