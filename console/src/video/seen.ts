import type { SliceKind } from '../wire';

/** Properties of a coded slice that the decoder's state depends on. */
export interface Coded {
  kind: SliceKind;
  /** Number of preceding slices of the strip that its content depends on; `null` if unknown. */
  history: number | null;
  /**
   * Set if the operator's process knows of an earlier loss that the slices do not show, such as
   * that of an IDR.
   */
  corrupt: boolean;
}

/**
 * Tracks whether a strip is clean: nothing that it is predicted from was lost.
 *
 * It uses only the slices, like the concealment in the operator's process. An IDR starts a clean
 * chain. A skip slice replaces a lost one. A slice is clean again if its whole history arrived
 * since then.
 */
export class Chain {
  #clean = false;
  /** Slices since the newest lost one, which is not counted. */
  #unbroken = 0;

  /** Handles the next decoded slice. Returns whether the strip is clean with it. */
  take({ kind, history, corrupt }: Coded): boolean {
    switch (kind) {
      case 'idr':
        [this.#clean, this.#unbroken] = [true, 1];
        break;
      case 'skip':
        [this.#clean, this.#unbroken] = [false, 0];
        break;
      case 'predicted':
        this.#unbroken += 1;
        if (history !== null && history < LONG && this.#unbroken > history) this.#clean = true;
        break;
    }
    if (corrupt) this.#clean = false;
    return this.#clean;
  }

  /** Handles a restart of the decoder. */
  break(): void {
    [this.#clean, this.#unbroken] = [false, 0];
  }
}

/** Content of a strip on the screen. */
export interface Shown {
  picture: number;
  /** Guard's tick in the picture's stamp; 0 if none. */
  tick: number;
  capturedAtUs: number;
}

/**
 * Tracks the newest picture that a person could see. Every strip of it, or of a newer picture, was
 * clean and drawn, and an animation frame followed while the page was visible.
 *
 * A strip that is corrupt or concealed keeps its last clean content, which ages.
 */
export class Seen {
  #drawn: (Shown | null)[] = [];
  #seen: (Shown | null)[] = [];

  /** Starts over with this number of strips, none of them seen. */
  arrange(stripCount: number): void {
    this.#drawn = Array.from({ length: stripCount }, () => null);
    this.#seen = [...this.#drawn];
  }

  /** Handles a drawn clean strip, which the next frame shows. */
  draw(strip: number, shown: Shown): void {
    const before = this.#drawn[strip] ?? null;
    // The camera counts from the start again: earlier numbers do not compare.
    if (before !== null && isAfter(before.picture, shown.picture)) this.arrange(this.#drawn.length);
    if (strip >= this.#drawn.length) return;
    this.#drawn[strip] = { picture: shown.picture, tick: shown.tick, capturedAtUs: shown.capturedAtUs };
  }

  /** Handles an animation frame. Strips drawn after it appear with the next one. */
  frame(visible: boolean): void {
    if (visible) this.#seen = [...this.#drawn];
  }

  /** Discards what was drawn since the last frame. */
  lose(): void {
    this.#drawn = [...this.#seen];
  }

  /** Returns the newest picture seen; `null` while a strip was never seen. */
  newest(): Shown | null {
    let oldest: Shown | null = null;
    for (const shown of this.#seen) {
      if (shown === null) return null;
      if (oldest === null || isAfter(oldest.picture, shown.picture)) oldest = shown;
    }
    return oldest;
  }
}

/** Returns whether picture `a` comes after picture `b`, on a wrapping 32-bit counter. */
function isAfter(a: number, b: number): boolean {
  return a !== b && ((a - b) >>> 0) < 2 ** 31;
}

/**
 * Value for a history of at least this length, or an unknown one: `Encoded::LONG` of the encoder.
 */
const LONG = 254;
