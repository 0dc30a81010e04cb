import type { Slice } from '../wire';
import { Chain } from './seen';

/** Data of a slice that its decoded frame does not contain. */
export interface Origin {
  strip: number;
  picture: number;
  capturedAtUs: number;
  /**
   * True if the slice replaces a lost one. It repeats old content, so its latency means nothing.
   */
  skip: boolean;
  /** True if the decoded strip equals the encoder's. */
  clean: boolean;
  /** Guard's tick in the picture's stamp; 0 if it has none. */
  tick: number;
  /** Time from the capture to the end of encoding, in microseconds. */
  encodedAfterUs: number;
  /** Time from the capture until the operator's process forwarded the slice, in microseconds. */
  handedOnAfterUs: number;
  /** Time when the slice was passed to the decoder, on the page's clock. */
  fedAtMs: number;
}

/**
 * Returns when the operator's process forwarded the slice, on the page's clock in ms. `offsetMs` is
 * the operator's clock minus the page's.
 */
export function handedOnAtMs(origin: Origin, offsetMs: number): number {
  return (origin.capturedAtUs + origin.handedOnAfterUs) / 1000 - offsetMs;
}

export type StripDrop = 'awaiting IDR' | 'decoder behind' | 'decoder error';

export interface StripEvents {
  /** Passes a decoded frame, which the receiver closes. */
  frame(frame: VideoFrame, origin: Origin): void;
  drop(name: StripDrop, count: number): void;
  /** Requests an IDR of this strip. */
  requestKeyframe(): void;
}

// Time without output after which a decoder counts as stuck. One that is merely late catches up
// before an IDR could arrive a round trip later, and load adaptation reduces its load. It is a
// time, not a number of slices: after an outage dozens arrive at once and decode in a few
// milliseconds.
const WAIT_MAX_MS = 400;
// Further time before a stuck decoder is given up. After the whole worker was blocked, decoded
// frames are ready but not delivered yet.
const GRACE_MS = 30;
// Largest number of slices in the decoder, to limit memory: one second at 60 pictures/s.
const QUEUE_MAX = 60;
// Step of the chunks' timestamps. Any works; the picture interval at 60/s suits every decoder.
const TIMESTAMP_STEP_US = 16_667;

/**
 * Decoder of one strip. It starts with an IDR. After an error, or when it is stuck, it drops all
 * slices until the next IDR, which it requests.
 */
export class StripDecoder {
  #decoder: VideoDecoder | null = null;
  #awaitingIdr = true;
  readonly #chain = new Chain();
  /**
   * Slices in the decoder by the timestamp of their chunk, a separate counter: capture times may
   * repeat or step back.
   */
  readonly #origins = new Map<number, Origin>();
  #fed = 0;
  /**
   * Time when the oldest slice in the decoder was first found to have waited too long; `null` if it
   * has not.
   */
  #behindSinceMs: number | null = null;

  constructor(
    readonly strip: number,
    readonly config: VideoDecoderConfig,
    readonly events: StripEvents,
  ) {
    // Opened already now: a decoder takes as long to start as the first IDR takes to arrive.
    this.#prepare();
  }

  feed(slice: Slice, nowMs: number): void {
    if (this.#isBehind(nowMs)) {
      // This slice, and those in the decoder, which are dropped too.
      this.events.drop('decoder behind', 1 + this.#origins.size);
      this.#startOver();
    } else if (this.#awaitingIdr && slice.kind !== 'idr') {
      this.events.drop('awaiting IDR', 1);
      this.events.requestKeyframe();
    } else {
      this.#decode(slice, nowMs);
    }
  }

  close(): void {
    const decoder = this.#decoder;
    this.#decoder = null;
    this.#origins.clear();
    this.#behindSinceMs = null;
    if (decoder !== null && decoder.state !== 'closed') decoder.close();
  }

  #prepare(): void {
    try {
      this.#decoder = this.#open();
    } catch {
      // The first slice tries again and reports the error.
    }
  }

  #isBehind(nowMs: number): boolean {
    if (this.#origins.size >= QUEUE_MAX) return true;
    const oldest = this.#origins.values().next();
    if (oldest.done === true || nowMs - oldest.value.fedAtMs <= WAIT_MAX_MS) {
      this.#behindSinceMs = null;
      return false;
    }
    this.#behindSinceMs ??= nowMs;
    return nowMs - this.#behindSinceMs >= GRACE_MS;
  }

  #decode(slice: Slice, nowMs: number): void {
    this.#fed += 1;
    const timestamp = this.#fed * TIMESTAMP_STEP_US;
    try {
      this.#decoder ??= this.#open();
      const chunk = new EncodedVideoChunk({
        type: slice.kind === 'idr' ? 'key' : 'delta',
        timestamp,
        data: slice.bytes,
      });
      this.#decoder.decode(chunk);
    } catch {
      this.#failed();
      return;
    }
    this.#awaitingIdr = false;
    const origin: Origin = {
      strip: this.strip,
      picture: slice.picture,
      capturedAtUs: slice.capturedAtUs,
      skip: slice.kind === 'skip',
      clean: this.#chain.take(slice),
      tick: slice.tick,
      encodedAfterUs: slice.encodedAfterUs,
      handedOnAfterUs: slice.handedOnAfterUs,
      fedAtMs: nowMs,
    };
    this.#origins.set(timestamp, origin);
  }

  #open(): VideoDecoder {
    const decoder = new VideoDecoder({
      output: (frame) => this.#output(frame),
      error: () => {
        if (this.#decoder === decoder) this.#failed();
      },
    });
    decoder.configure(this.config);
    return decoder;
  }

  #output(frame: VideoFrame): void {
    const origin = this.#origins.get(frame.timestamp);
    if (origin === undefined) {
      frame.close();
      return;
    }
    this.#behindSinceMs = null;
    // Frames come out in order, so slices older than this one never come out.
    for (const timestamp of this.#origins.keys()) {
      this.#origins.delete(timestamp);
      if (timestamp === frame.timestamp) break;
    }
    this.events.frame(frame, origin);
  }

  #failed(): void {
    this.events.drop('decoder error', 1);
    this.#startOver();
  }

  #startOver(): void {
    this.close();
    this.#chain.break();
    this.#awaitingIdr = true;
    this.events.requestKeyframe();
  }
}
