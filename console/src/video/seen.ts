import type { SliceKind } from '../wire';

/** What is known of one coded slice when it is given to its decoder. */
export interface Coded {
  kind: SliceKind;
  /** How many slices of the strip before it decide what it shows; null: not told. */
  history: number | null;
  /** The operator's process knows of a loss before it that the slices do not show, such as an IDR's. */
  corrupt: boolean;
}

/**
 * Whether one strip shows what its encoder meant: nothing that it is predicted from was lost.
 *
 * By the slices alone, as the concealer of the operator's process goes by them: an IDR begins anew, a skip slice stands
 * for a lost one, and a slice whose whole history came since then is clean again.
 */
export class Chain {
  #clean = false;
  /** Slices since the newest lost one, that one not counted. */
  #unbroken = 0;

  /** Takes the next slice that is decoded; returns whether the strip is clean with it. */
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

  /** The decoder begins anew. */
  break(): void {
    [this.#clean, this.#unbroken] = [false, 0];
  }
}

/** What a strip shows. */
export interface Shown {
  picture: number;
  /** The guard's tick that the picture is stamped with; 0: it has none. */
  tick: number;
  capturedAtUs: number;
}

/**
 * The newest picture that a person could see: every strip of it, or of a newer one, clean and drawn, and the animation
 * frame after the drawing has come while the page was visible.
 *
 * A strip that is corrupt or concealed keeps what it showed last: it gets older.
 */
export class Seen {
  #drawn: (Shown | null)[] = [];
  #seen: (Shown | null)[] = [];

  /** Nothing was seen yet, in so many strips. */
  arrange(stripCount: number): void {
    this.#drawn = Array.from({ length: stripCount }, () => null);
    this.#seen = [...this.#drawn];
  }

  /** A clean strip was drawn; it is on the screen with the next frame. */
  draw(strip: number, shown: Shown): void {
    const before = this.#drawn[strip] ?? null;
    // A camera that counts anew: what was seen before does not compare.
    if (before !== null && isAfter(before.picture, shown.picture)) this.arrange(this.#drawn.length);
    if (strip >= this.#drawn.length) return;
    this.#drawn[strip] = { picture: shown.picture, tick: shown.tick, capturedAtUs: shown.capturedAtUs };
  }

  /** The screen's next frame begins; what is drawn from here on is of the one after. */
  frame(visible: boolean): void {
    if (visible) this.#seen = [...this.#drawn];
  }

  /** What was drawn since the screen's last frame is gone. */
  lose(): void {
    this.#drawn = [...this.#seen];
  }

  /** Null: some strip was never seen. */
  newest(): Shown | null {
    let oldest: Shown | null = null;
    for (const shown of this.#seen) {
      if (shown === null) return null;
      if (oldest === null || isAfter(oldest.picture, shown.picture)) oldest = shown;
    }
    return oldest;
  }
}

/** Returns whether picture `a` comes after picture `b`, on a counter of 32 bits that wraps. */
function isAfter(a: number, b: number): boolean {
  return a !== b && ((a - b) >>> 0) < 2 ** 31;
}

/** A history of so many slices or more, of which nothing is known: `Encoded::LONG` of the encoder. */
const LONG = 254;
