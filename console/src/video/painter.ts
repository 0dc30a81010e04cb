import type { Origin } from './strip';

export interface PainterEvents {
  /** Draws the frame, which is closed afterwards. */
  draw(frame: VideoFrame, origin: Origin): void;
  /** Called at the screen's next frame, which shows what was drawn before this call. */
  frame(): void;
  /** Called if a newer frame of the same strip replaces one that was never drawn. */
  superseded(): void;
}

/**
 * Draws each strip at most twice per screen frame, the second time with its newest frame.
 *
 * The first frame of a strip is drawn on arrival, which spreads the work. A second one waits for
 * the animation frame. A slow browser has fewer animation frames, so it draws less instead of
 * later. A hidden page has none: the newest frame waits undrawn.
 */
export class Painter {
  /** By strip. */
  readonly #waiting = new Map<number, { frame: VideoFrame; origin: Origin }>();
  readonly #drawn = new Set<number>();
  #asked = false;

  constructor(readonly events: PainterEvents, readonly atNextFrame: (call: () => void) => void) {}

  /** Takes ownership of the frame and closes it in every case. */
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

  /** Drops the waiting frames. */
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
