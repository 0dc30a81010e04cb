import type { Origin } from './strip';

export interface PainterEvents {
  /** The frame is closed afterwards. */
  draw(frame: VideoFrame, origin: Origin): void;
  /** The screen's next frame begins: it shows what was drawn before this call. */
  frame(): void;
  /** A newer frame of the same strip came before this one could be seen. */
  superseded(): void;
}

/**
 * Draws each strip at most once between two frames of the screen, and then its newest.
 *
 * The first of a strip is drawn as it comes, which spreads the work; a second one waits for the
 * animation frame. A browser that cannot keep up has fewer animation frames, so it draws less
 * instead of later. A hidden page has none: there the newest waits undrawn.
 */
export class Painter {
  /** By strip. */
  readonly #waiting = new Map<number, { frame: VideoFrame; origin: Origin }>();
  readonly #drawn = new Set<number>();
  #asked = false;

  constructor(readonly events: PainterEvents, readonly atNextFrame: (call: () => void) => void) {}

  /** Takes the frame over: it is closed whatever becomes of it. */
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

  /** Drops what waits. */
  clear(): void {
    for (const { frame } of this.#waiting.values()) frame.close();
    this.#waiting.clear();
  }

  #frame(): void {
    this.#asked = false;
    this.events.frame();
    // What is drawn here is seen with this frame; what comes later, with the next.
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
