import type { Slice } from '../wire';
import { Chain } from './seen';

/** Origin of a decoded strip. */
export interface Origin {
  strip: number;
  picture: number;
  capturedAtUs: number;
  /** True if it replaces a lost slice. It repeats old content, so its latency is meaningless. */
  skip: boolean;
  /** True if the strip equals the encoder's with it. */
  clean: boolean;
  /** Guard's tick in the picture's stamp; 0 if none. */
  tick: number;
  /**
   * Time from the capture to the end of encoding, and until the operator's process forwarded it.
   */
  encodedAfterUs: number;
  handedOnAfterUs: number;
  /** Time when it was passed to the decoder. */
  fedAtMs: number;
}

/**
 * Returns when the operator's process forwarded it, on the page's clock. `offsetMs` is the
 * operator's clock minus the page's.
 */
export function handedOnAtMs(origin: Origin, offsetMs: number): number {
  return (origin.capturedAtUs + origin.handedOnAfterUs) / 1000 - offsetMs;
}

export type StripDrop = 'awaiting IDR' | 'decoder behind' | 'decoder error';

export interface StripEvents {
  /** Passes a frame, which the receiver closes. */
  frame(frame: VideoFrame, origin: Origin): void;
  drop(name: StripDrop, count: number): void;
  /** Requests an IDR of this strip. */
  requestKeyframe(): void;
}

// A decoder without output for this long is stuck. One that is merely late catches up before an IDR
// could arrive a round trip later, and load adaptation reduces its load. A time, not a number of
// slices: after an outage dozens arrive at once and decode in a few milliseconds.
const WAIT_MAX_MS = 400;
// After the whole worker was blocked, frames are ready but not delivered yet. They get this long to
// arrive.
const GRACE_MS = 30;
// A bound for memory only: one second at 60 pictures/s.
const QUEUE_MAX = 60;
// Any step works; the picture interval at 60/s suits every decoder.
const TIMESTAMP_STEP_US = 16_667;

/**
 * Decoder of one strip. It starts with an IDR. After an error, or when it falls behind, it drops
 * all slices until the next IDR, which it requests.
 */
export class StripDecoder {
  #decoder: VideoDecoder | null = null;
  #awaitingIdr = true;
  readonly #chain = new Chain();
  /** By chunk timestamp, which is a separate counter: capture times may repeat or step back. */
  readonly #origins = new Map<number, Origin>();
  #fed = 0;
  /** Time when the oldest undecoded slice first exceeded its wait. */
  #behindSinceMs: number | null = null;

  constructor(
    readonly strip: number,
    readonly config: VideoDecoderConfig,
    readonly events: StripEvents,
  ) {
    // A decoder takes as long to start as the first IDR takes to arrive.
    this.#prepare();
  }

  feed(slice: Slice, nowMs: number): void {
    if (this.#isBehind(nowMs)) {
      // One for this slice, and those in the queue, which are dropped too.
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
    // Output is in order: slices older than this one never come out.
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
