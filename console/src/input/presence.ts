import { GUARD_ABSENCES, type GuardAbsence } from '../generated/kinds';
import { bitsOf } from '../guard';

/** Reasons why the operator counts as absent or the inputs as unusable, the worst first. */
export const ABSENCES = [
  'hidden', 'unfocused', 'pad gone', 'pad frozen', 'pad unsound', 'calibrating', 'meta key', 'dead-man released',
] as const;
export type Absence = (typeof ABSENCES)[number];

/** The guard's name of each absence; `null` if a command reports it in a separate field. */
const GUARD_ABSENCE: Readonly<Record<Absence, GuardAbsence | null>> = {
  hidden: 'page hidden',
  unfocused: 'focus lost',
  'pad gone': 'inputs unhealthy',
  'pad frozen': 'inputs unhealthy',
  'pad unsound': 'inputs unhealthy',
  calibrating: 'inputs unhealthy',
  'meta key': 'inputs unhealthy',
  'dead-man released': null,
};

/** Current absences. Each one ends independently. */
export class Presence {
  readonly #absences = new Set<Absence>();

  /** Begins or continues an absence if it `holds`, else ends it. */
  set(absence: Absence, holds: boolean): void {
    if (holds) this.#absences.add(absence);
    else this.#absences.delete(absence);
  }

  has(absence: Absence): boolean {
    return this.#absences.has(absence);
  }

  /**
   * Ends the absences that end once the operator presses a driving key, clicks on the page or
   * focuses it.
   */
  takeUp(): void {
    for (const absence of ['unfocused', 'pad gone', 'pad frozen', 'pad unsound', 'meta key'] as const) this.#absences.delete(absence);
  }

  /** The worst absence; `null` if the person is present. */
  get worst(): Absence | null {
    return ABSENCES.find((absence) => this.#absences.has(absence)) ?? null;
  }

  /** Bit mask of the absences, as a command contains it. */
  get bits(): number {
    const told = [...this.#absences].map((absence) => GUARD_ABSENCE[absence]).filter((absence) => absence !== null);
    return bitsOf<GuardAbsence>(GUARD_ABSENCES, told);
  }
}

export type DeadMan = 'absent' | 'held' | 'released';

const STORE = 'tautline.dead-man';

/**
 * The dead-man input: a key or button that must be held while driving, if the operator or the guard
 * requires it.
 */
export class DeadManInput {
  #wanted: boolean;
  #required = false;

  constructor(readonly store: Pick<Storage, 'getItem' | 'setItem'>) {
    this.#wanted = readWanted(store);
  }

  get wanted(): boolean {
    return this.#wanted;
  }

  set wanted(wanted: boolean) {
    this.#wanted = wanted;
    try {
      this.store.setItem(STORE, String(wanted));
    } catch {
      // Without storage the choice lasts until the page is closed.
    }
  }

  /** Makes the input required until the page is closed, because the guard asks for it. */
  require(): void {
    this.#required = true;
  }

  /**
   * Returns the state of the input. `held` means that its key or button is held. Otherwise the
   * input is `absent` if neither the operator nor the guard wants one.
   */
  read(held: boolean): DeadMan {
    if (held) return 'held';
    return this.#wanted || this.#required ? 'released' : 'absent';
  }
}

function readWanted(store: Pick<Storage, 'getItem'>): boolean {
  try {
    return store.getItem(STORE) === 'true';
  } catch {
    return false;
  }
}
