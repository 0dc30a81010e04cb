import type { Origin } from './strip';

export interface PainterEvents {
  /** The frame is closed afterwards. */
  draw(frame: VideoFrame, origin: Origin): void;
  /** A newer frame of the same strip came before this one could be drawn. */
  superseded(): void;
}

/**
 * Draws each strip's newest frame as soon as the worker is free.
 *
 * A worker that keeps up draws every frame as it comes. One that was held up finds several frames
 * of a strip, and draws the last alone: it catches up by drawing less, not later. It does not wait
 * for the screen's animation frames, which a busy machine holds back for seconds.
 */
export class Painter {
  /** By strip. */
  readonly #waiting = new Map<number, { frame: VideoFrame; origin: Origin }>();
  #asked = false;

  /** `soon`: calls once, after what the worker has been told already. */
  constructor(readonly events: PainterEvents, readonly soon: (call: () => void) => void) {}

  /** Takes the frame over: it is closed whatever becomes of it. */
  offer(frame: VideoFrame, origin: Origin): void {
    const older = this.#waiting.get(origin.strip);
    if (older !== undefined) {
      older.frame.close();
      this.events.superseded();
    }
    this.#waiting.set(origin.strip, { frame, origin });
    if (this.#asked) return;
    this.#asked = true;
    this.soon(() => this.#flush());
  }

  /** Drops what waits. */
  clear(): void {
    for (const { frame } of this.#waiting.values()) frame.close();
    this.#waiting.clear();
  }

  #flush(): void {
    this.#asked = false;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { frame, origin } of waiting) {
      try {
        this.events.draw(frame, origin);
      } finally {
        frame.close();
      }
    }
  }
}
