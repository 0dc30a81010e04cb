import type { Slice } from '../wire';

/** What a decoded strip was made from. */
export interface Origin {
  strip: number;
  picture: number;
  capturedAtUs: number;
  /** A stand-in for a lost slice: it repeats old content, so its latency means nothing. */
  skip: boolean;
}

export type StripDrop = 'awaiting IDR' | 'decoder behind' | 'decoder error';

export interface StripEvents {
  /** The receiver closes the frame. */
  frame(frame: VideoFrame, origin: Origin): void;
  drop(name: StripDrop, count: number): void;
  /** This strip wants an IDR. */
  wish(): void;
}

// A tenth of a second at 60 pictures/s: what waits longer is better skipped.
const QUEUE_MAX = 6;
// Any step does; a picture's time at 60/s looks natural to every decoder.
const TIMESTAMP_STEP_US = 16_667;

/**
 * One strip's decoder. Starts with an IDR, and after an error or when it falls behind drops all
 * until the next one, which it asks for.
 */
export class StripDecoder {
  #decoder: VideoDecoder | null = null;
  #awaitingIdr = true;
  /** By chunk timestamp, which is a number of our own: capture times may repeat or step back. */
  readonly #origins = new Map<number, Origin>();
  #fed = 0;

  constructor(
    readonly strip: number,
    readonly config: VideoDecoderConfig,
    readonly events: StripEvents,
  ) {}

  feed(slice: Slice): void {
    if (!this.#awaitingIdr && (this.#decoder?.decodeQueueSize ?? 0) >= QUEUE_MAX) {
      // One for this slice; those in the queue are gone too.
      this.events.drop('decoder behind', 1 + this.#origins.size);
      this.#startOver();
    } else if (this.#awaitingIdr && slice.kind !== 'idr') {
      this.events.drop('awaiting IDR', 1);
      this.events.wish();
    } else {
      this.#decode(slice);
    }
  }

  close(): void {
    const decoder = this.#decoder;
    this.#decoder = null;
    this.#origins.clear();
    if (decoder !== null && decoder.state !== 'closed') decoder.close();
  }

  #decode(slice: Slice): void {
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
    this.#origins.set(timestamp, {
      strip: this.strip,
      picture: slice.picture,
      capturedAtUs: slice.capturedAtUs,
      skip: slice.kind === 'skip',
    });
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
    this.#awaitingIdr = true;
    this.events.wish();
  }
}
