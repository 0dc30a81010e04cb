import type { Origin } from './strip';

export interface PainterEvents {
  /** Draws the frame. The caller closes it afterwards. */
  draw(frame: VideoFrame, origin: Origin): void;
  /** Called at each animation frame, which shows what was drawn before this call. */
  frame(): void;
  /** Called if a newer frame of the same strip replaces one that was never drawn. */
  superseded(): void;
}

/**
 * Draws each strip at most twice per screen frame, the second time with its newest frame.
 *
 * The first frame of a strip is drawn on arrival, which spreads the work. Another waits for the
 * animation frame. A slow browser has fewer animation frames, so it draws less instead of later. A
 * hidden page has none: the newest frame of each strip waits undrawn.
 */
export class Painter {
  /** Frame to draw at the next animation frame, by strip. */
  readonly #waiting = new Map<number, { frame: VideoFrame; origin: Origin }>();
  /** Strips drawn since the last animation frame. */
  readonly #drawn = new Set<number>();
  /** True if an animation frame is requested. */
  #asked = false;

  constructor(readonly events: PainterEvents, readonly atNextFrame: (call: () => void) => void) {}

  /**
   * Draws the frame, or keeps it until the next animation frame. Takes ownership, and closes the
   * frame in every case.
   */
  offer(frame: VideoFrame, origin: Origin): void {
    if (this.#drawn.has(origin.strip)) {
      const older = this.#waiting.get(origin.strip);
      if (older !== undefined) {
        older.frame.close();
        this.events.superseded();
      }
      this.#waiting.set(origin.strip, { frame, origin });
    } else {
      this.#drawn.add(origin.strip);
      this.#draw(frame, origin);
    }
    this.#ask();
  }

  /** Drops the frames that wait to be drawn. */
  clear(): void {
    for (const { frame } of this.#waiting.values()) frame.close();
    this.#waiting.clear();
  }

  #frame(): void {
    this.#asked = false;
    this.events.frame();
    // Anything drawn from here on appears with the next frame.
    this.#drawn.clear();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { frame, origin } of waiting) this.#draw(frame, origin);
    if (waiting.length > 0) this.#ask();
  }

  #ask(): void {
    if (this.#asked) return;
    this.#asked = true;
    this.atNextFrame(() => this.#frame());
  }

  #draw(frame: VideoFrame, origin: Origin): void {
    try {
      this.events.draw(frame, origin);
    } finally {
      frame.close();
    }
  }
}
