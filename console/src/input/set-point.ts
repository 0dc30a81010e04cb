import type { Bounds } from '../twist';
import { RELEASED } from './device';

/** Way to set the speed: by how far a control is held, or as a speed that stays. */
export type SpeedMode = 'stick' | 'set point';

/** Part of the bound by which a full control changes the held speed in a second. */
const CHANGE_PER_SECOND = 0.5;
/** Slowest held speed in m/s; below it the machine would count as standing. */
const SLOWEST_MPS = 0.05;

/** A speed that stays until it is changed, like that of a cruise control. */
export class SetPoint {
  #mps = 0;
  /** True once the control was released after the speed became 0. */
  #ready = false;

  /**
   * Returns the held speed in m/s, within the bounds, `seconds` after the last call. `lever` is the
   * position of the control, -1 to 1, which changes it.
   *
   * The speed stops at 0: the control must be released before it drives the other way. Bounds that
   * fall and rise again reduce it only meanwhile.
   */
  next(lever: number, bounds: Bounds, seconds: number): number {
    const held = within(this.#mps, bounds);
    if (Math.abs(lever) < RELEASED) {
      this.#ready = true;
      if (Math.abs(this.#mps) < SLOWEST_MPS) this.#mps = 0;
    } else if (this.#ready) {
      const next = within(held + lever * CHANGE_PER_SECOND * bounds.forward * seconds, bounds);
      if (held * next < 0 || (held !== 0 && next === 0)) this.zero();
      else if (next !== held) this.#mps = next;
    }
    return within(this.#mps, bounds);
  }

  /** Ends the held speed. It begins again at 0, once the control was released. */
  zero(): void {
    this.#mps = 0;
    this.#ready = false;
  }

  /** Speed in m/s that is held, before any bounds. */
  get mps(): number {
    return this.#mps;
  }
}

function within(mps: number, { forward, back }: Bounds): number {
  return Math.min(forward, Math.max(-back, mps));
}

const STORE = 'tautline.speed';

/** The person's choice of the speed mode, kept by this browser. */
export class SpeedSetting {
  #mode: SpeedMode;

  constructor(readonly store: Pick<Storage, 'getItem' | 'setItem'>) {
    this.#mode = readMode(store);
  }

  get mode(): SpeedMode {
    return this.#mode;
  }

  set mode(mode: SpeedMode) {
    this.#mode = mode;
    try {
      this.store.setItem(STORE, mode);
    } catch {
      // Without storage the choice lasts until the page is closed.
    }
  }
}

function readMode(store: Pick<Storage, 'getItem'>): SpeedMode {
  try {
    return store.getItem(STORE) === 'set point' ? 'set point' : 'stick';
  } catch {
    return 'stick';
  }
}
