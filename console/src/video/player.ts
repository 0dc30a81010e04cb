import { type OperatorClock, nowMs } from '../clock';
import { Counters } from '../counters';
import { LatencyWindow } from '../latency';
import { Rate } from '../rate';
import type { SeenView, VideoView } from '../report';
import { stampAge } from '../stamp';
import type { PictureFormat, Slice } from '../wire';
import { LoadAdaptation } from './load-adaptation';
import { Painter } from './painter';
import type { Screen } from './screen';
import { Seen } from './seen';
import { Stages } from './stages';
import { type Origin, StripDecoder, type StripDrop, handedOnAtMs } from './strip';

const WINDOW_MS = 10_000;
// Samples of eight strips at 120 pictures/s for ten seconds.
const SAMPLES_MAX = 9_600;
const STAMP_EVERY_MS = 1_000;
// Shortest time between two requests for an IDR of a strip. An answer takes a round trip and an
// encoder's turn; faster requests only cause more IDRs.
const REQUEST_EVERY_MS = 250;
// Largest number of incomplete pictures to keep; older ones never complete.
const OPEN_PICTURES_MAX = 32;

type PlayerDrop = StripDrop | 'superseded before drawn' | 'canvas lost' | 'unknown strip' | 'before hello';
const DROPS: readonly PlayerDrop[] = [
  'awaiting IDR', 'decoder behind', 'decoder error', 'superseded before drawn', 'canvas lost', 'unknown strip',
  'before hello'];

/** Decodes slices, draws strips and measures their latency. */
export class Player {
  #decoders: StripDecoder[] = [];
  #requestedAtMs: number[] = [];
  readonly #drops = new Counters<PlayerDrop>(DROPS);
  readonly #latency = new LatencyWindow(WINDOW_MS, SAMPLES_MAX);
  readonly #stages = new Stages(WINDOW_MS, SAMPLES_MAX);
  readonly #decodedAtMs = new WeakMap<VideoFrame, number>();
  readonly #strips = new Rate(1_000);
  readonly #pictures = new Rate(1_000);
  readonly #bits = new Rate(1_000);
  readonly #drawMs = new Rate(1_000);
  /** Mask of the drawn strips of each incomplete picture, by picture number. */
  readonly #open = new Map<number, number>();
  readonly #painter: Painter;
  readonly #seen = new Seen();
  /** Strips drawn since the last animation frame. */
  #drawn: Origin[] = [];
  /** True if the page is visible: nobody sees what is drawn on a hidden one. */
  visible = true;
  #load = new LoadAdaptation();
  #stamp: VideoView['stamp'] = null;
  #stampedAtMs = 0;

  /**
   * `requestKeyframe` requests an IDR of strip n for each bit n that is set. `atNextFrame` calls
   * its argument once, at the next animation frame.
   */
  constructor(
    readonly screen: Screen,
    readonly clock: OperatorClock,
    readonly requestKeyframe: (strips: number) => void,
    atNextFrame: (call: () => void) => void,
  ) {
    this.#painter = new Painter({
      draw: (frame, origin) => this.#draw(frame, origin),
      frame: () => this.#handleFrame(),
      superseded: () => {
        this.#drops.add('superseded before drawn');
        this.#load.addLost(1);
      },
    }, atNextFrame);
  }

  /**
   * Starts new decoders for pictures of this format. Earlier slices belong to another connection or
   * have another size.
   *
   * `isSame` means that the vehicle is the same. Its picture then stays on the screen and counts as
   * seen until new ones arrive, and load adaptation keeps its state.
   */
  start(picture: PictureFormat, isSame = false): void {
    const keeps = isSame && this.#decoders.length === picture.strips.length;
    this.stop();
    if (!isSame) this.#load = new LoadAdaptation();
    this.screen.arrange(picture);
    if (!keeps) this.#seen.arrange(picture.strips.length);
    this.#requestedAtMs = picture.strips.map(() => -Infinity);
    this.#decoders = picture.strips.map((_, strip) => new StripDecoder(
      strip,
      { codec: picture.codec, optimizeForLatency: true },
      {
        frame: (frame, origin) => {
          this.#decodedAtMs.set(frame, nowMs());
          this.#painter.offer(frame, origin);
        },
        drop: (name, count) => {
          this.#drops.add(name, count);
          if (name === 'decoder behind') this.#load.addLost(count);
        },
        requestKeyframe: () => this.#want(strip),
      },
    ));
  }

  stop(): void {
    for (const decoder of this.#decoders) decoder.close();
    this.#decoders = [];
    this.#painter.clear();
    this.#drawn = [];
    this.#open.clear();
  }

  /** Decodes a slice, or counts it as a drop. */
  feed(slice: Slice): void {
    const now = nowMs();
    this.#bits.add(slice.bytes.length * 8, now);
    const decoder = this.#decoders[slice.strip];
    if (decoder === undefined) {
      this.#drops.add(this.#decoders.length === 0 ? 'before hello' : 'unknown strip');
      return;
    }
    decoder.feed(slice, now);
  }

  /** Returns the newest picture that a person could see; `null` before the first one. */
  seen(): SeenView | null {
    const shown = this.#seen.newest();
    if (shown === null) return null;
    const clock = this.clock.best();
    return {
      tick: shown.tick,
      picture: shown.picture,
      capturedAtMs: shown.capturedAtUs === 0 ? -Infinity : clock === null ? null : shown.capturedAtUs / 1000 - clock.offsetMs,
    };
  }

  /** Frame decimation: every n-th picture is requested. */
  get pictureInterval(): number {
    return this.#load.pictureInterval;
  }

  view(): VideoView {
    const now = nowMs();
    const stripRate = this.#strips.perSecond(now);
    return {
      latency: this.#latency.view(now),
      pictureRate: this.#pictures.perSecond(now),
      stripRate,
      pictureInterval: this.pictureInterval,
      bitrateBps: this.#bits.perSecond(now),
      drawMs: stripRate > 0 ? this.#drawMs.perSecond(now) / stripRate : 0,
      stages: this.#stages.view(now),
      worstEverMs: this.#latency.worstEver,
      stamp: this.#stamp,
      clock: this.clock.best(),
      drops: this.#drops.list(),
    };
  }

  /**
   * Handles an animation frame: what was drawn is now on the screen, unless the canvas was lost.
   */
  #handleFrame(): void {
    if (this.screen.isLost) this.#seen.lose();
    else this.#seen.frame(this.visible);
    const [drawn, clock, now] = [this.#drawn, this.clock.best(), nowMs()];
    this.#drawn = [];
    if (clock === null || !this.visible) return;
    for (const origin of drawn) {
      if (origin.capturedAtUs === 0) continue;
      // The round trip between page and operator's process is not due to this computer.
      const arrivesAtMs = handedOnAtMs(origin, clock.offsetMs) + clock.rttMs / 2;
      this.#load.add(origin, now - arrivesAtMs, now);
    }
  }

  #draw(frame: VideoFrame, origin: Origin): void {
    if (this.screen.isLost) {
      this.#drops.add('canvas lost');
      this.#seen.lose();
      return;
    }
    const before = nowMs();
    this.screen.draw(frame, origin.strip);
    const drawn = nowMs();
    this.#drawMs.add(drawn - before, drawn);
    this.#strips.add(1, drawn);
    this.#countPicture(origin, drawn);
    if (origin.clean) this.#seen.draw(origin.strip, origin);
    if (!origin.skip) this.#drawn.push(origin);
    const clock = this.clock.best();
    if (!origin.skip && clock !== null && origin.capturedAtUs !== 0) {
      this.#latency.add(drawn + clock.offsetMs - origin.capturedAtUs / 1000, drawn);
      this.#stages.add(origin, clock.offsetMs, this.#decodedAtMs.get(frame) ?? before, drawn);
    }
    if (origin.strip === 0 && !origin.skip && drawn - this.#stampedAtMs >= STAMP_EVERY_MS) {
      this.#stampedAtMs = drawn;
      const value = this.screen.stampOf(frame);
      this.#stamp = value === null ? null : {
        value,
        latencyMs: clock === null ? null : stampAge(value, drawn + clock.offsetMs),
      };
    }
  }

  #countPicture(origin: Origin, atMs: number): void {
    const mask = (this.#open.get(origin.picture) ?? 0) | (1 << origin.strip);
    if (mask === (1 << this.#decoders.length) - 1) {
      this.#open.delete(origin.picture);
      this.#pictures.add(1, atMs);
      return;
    }
    this.#open.set(origin.picture, mask);
    if (this.#open.size > OPEN_PICTURES_MAX) {
      const oldest = this.#open.keys().next();
      if (!oldest.done) this.#open.delete(oldest.value);
    }
  }

  /** Requests an IDR of the strip, unless that was done in the last 250 ms. */
  #want(strip: number): void {
    const now = nowMs();
    if (now - (this.#requestedAtMs[strip] ?? -Infinity) < REQUEST_EVERY_MS) return;
    this.#requestedAtMs[strip] = now;
    this.requestKeyframe(1 << strip);
  }
}
