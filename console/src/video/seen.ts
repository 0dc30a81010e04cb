import type { SliceKind } from '../wire';

/** Properties of a coded slice that the decoder's state depends on. */
export interface Coded {
  kind: SliceKind;
  /** Number of preceding slices of the strip that its content depends on; `null` if unknown. */
  history: number | null;
  /**
   * True if the operator's process knows of an earlier loss that the slices do not show, such as
   * that of an IDR.
   */
  corrupt: boolean;
}

/**
 * Tracks whether a strip is clean: nothing was lost that its content is predicted from.
 *
 * It uses only the slices, like the concealment in the operator's process. An IDR makes the strip
 * clean. A skip slice replaces a lost one, and the strip is not clean with it. A predicted slice
 * makes it clean again if its whole history arrived after the loss.
 */
export class Chain {
  #clean = false;
  /** Number of slices after the newest lost one. */
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

  /** Handles a restart of the decoder, after which the strip is not clean. */
  break(): void {
    [this.#clean, this.#unbroken] = [false, 0];
  }
}

/** Picture that a strip on the screen belongs to. */
export interface Shown {
  picture: number;
  /** Guard's tick in the picture's stamp; 0 if it has none. */
  tick: number;
  /** Capture time in Unix microseconds on the operator's clock; 0 if unknown. */
  capturedAtUs: number;
}

/**
 * Tracks the newest picture that a person could see: each strip showed this picture or a newer one,
 * clean and drawn before an animation frame on a visible page.
 *
 * A corrupt or concealed strip counts with its last clean content, which ages.
 */
export class Seen {
  #drawn: (Shown | null)[] = [];
  #seen: (Shown | null)[] = [];

  /** Starts over with `stripCount` strips, none of them seen. */
  arrange(stripCount: number): void {
    this.#drawn = Array.from({ length: stripCount }, () => null);
    this.#seen = [...this.#drawn];
  }

  /**
   * Handles a clean strip that was drawn. The next animation frame shows it. A picture number that
   * goes back starts over with all strips.
   */
  draw(strip: number, shown: Shown): void {
    const before = this.#drawn[strip] ?? null;
    // The picture numbers have started again, so earlier ones do not compare with them.
    if (before !== null && isAfter(before.picture, shown.picture)) this.arrange(this.#drawn.length);
    if (strip >= this.#drawn.length) return;
    this.#drawn[strip] = { picture: shown.picture, tick: shown.tick, capturedAtUs: shown.capturedAtUs };
  }

  /**
   * Handles an animation frame. Strips drawn after it appear with the next one, and nothing is seen
   * on a page that is not `visible`.
   */
  frame(visible: boolean): void {
    if (visible) this.#seen = [...this.#drawn];
  }

  /** Discards what was drawn since the last animation frame, because the canvas was lost. */
  lose(): void {
    this.#drawn = [...this.#seen];
  }

  /**
   * Returns the newest picture seen: the oldest of those last seen in each strip. `null` while a
   * strip was never seen.
   */
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
 * Value that stands for every history of at least this length, and for an unknown one:
 * `Encoded::LONG` of the encoder.
 */
const LONG = 254;
