import type { Slice } from '../wire';
import { Chain } from './seen';

/** What a decoded strip was made from. */
export interface Origin {
  strip: number;
  picture: number;
  capturedAtUs: number;
  /** A stand-in for a lost slice: it repeats old content, so its latency means nothing. */
  skip: boolean;
  /** With it the strip is as its encoder has it. */
  clean: boolean;
  /** The guard's tick that the picture is stamped with; 0: none. */
  tick: number;
  /** From the capture to the end of its encoding, and to its handing on by the operator's process. */
  encodedAfterUs: number;
  handedOnAfterUs: number;
  /** When it was given to the decoder. */
  fedAtMs: number;
}

/** When the operator's process handed it on, by the page's clock; `offsetMs`: the operator's clock less the page's. */
export function handedOnAtMs(origin: Origin, offsetMs: number): number {
  return (origin.capturedAtUs + origin.handedOnAfterUs) / 1000 - offsetMs;
}

export type StripDrop = 'awaiting IDR' | 'decoder behind' | 'decoder error';

export interface StripEvents {
  /** The receiver closes the frame. */
  frame(frame: VideoFrame, origin: Origin): void;
  drop(name: StripDrop, count: number): void;
  /** This strip wants an IDR. */
  requestKeyframe(): void;
}

// A decoder that has given nothing for so long hangs. One that is merely late has caught up sooner than an IDR could
// come, a round trip later, and load adaptation gives it less to do. In time, not in slices: after an outage dozens
// come at once, and are decoded in a few milliseconds.
const WAIT_MAX_MS = 400;
// After a standstill of the whole worker, frames are ready but not yet told: they get this long to come.
const GRACE_MS = 30;
// A bound for memory alone: a second at 60 pictures/s.
const QUEUE_MAX = 60;
// Any step does; a picture's time at 60/s looks natural to every decoder.
const TIMESTAMP_STEP_US = 16_667;

/**
 * One strip's decoder. Starts with an IDR, and after an error or when it falls behind drops all
 * until the next one, which it asks for.
 */
export class StripDecoder {
  #decoder: VideoDecoder | null = null;
  #awaitingIdr = true;
  readonly #chain = new Chain();
  /** By chunk timestamp, which is a number of our own: capture times may repeat or step back. */
  readonly #origins = new Map<number, Origin>();
  #fed = 0;
  /** When the oldest undecoded slice was first seen to wait too long. */
  #behindSinceMs: number | null = null;

  constructor(
    readonly strip: number,
    readonly config: VideoDecoderConfig,
    readonly events: StripEvents,
  ) {
    // It takes a while to begin: as long as the first IDR is under way.
    this.#prepare();
  }

  feed(slice: Slice, nowMs: number): void {
    if (this.#isBehind(nowMs)) {
      // One for this slice; those in the queue are gone too.
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
      // The first slice tries again, and tells.
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
    // Slices come out in order: what is older than this one never will.
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
