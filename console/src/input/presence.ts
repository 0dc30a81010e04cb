/** What speaks against a person who is there with sound inputs; the worst first. */
export const ABSENCES = [
  'hidden', 'unfocused', 'pad gone', 'pad frozen', 'pad unsound', 'calibrating', 'meta key', 'dead-man released',
] as const;
export type Absence = (typeof ABSENCES)[number];

/** What the guard is told of them: its own numbers of absences. */
const GUARD_BITS: Readonly<Record<Absence, number>> = {
  hidden: 1 << 1,
  unfocused: 1 << 2,
  'pad gone': 1 << 3,
  'pad frozen': 1 << 3,
  'pad unsound': 1 << 3,
  calibrating: 1 << 3,
  'meta key': 1 << 3,
  // It has a field of its own.
  'dead-man released': 0,
};

/** Which absences there are now. Each ends by what ends it, and for itself. */
export class Presence {
  readonly #absences = new Set<Absence>();

  /** `holds`: it begins or goes on; otherwise it ends. */
  set(absence: Absence, holds: boolean): void {
    if (holds) this.#absences.add(absence);
    else this.#absences.delete(absence);
  }

  has(absence: Absence): boolean {
    return this.#absences.has(absence);
  }

  /** The person pressed or clicked something here: what only a person's hand ends, ends. */
  takeUp(): void {
    for (const absence of ['unfocused', 'pad gone', 'pad frozen', 'pad unsound', 'meta key'] as const) this.#absences.delete(absence);
  }

  /** Null: the person is there. */
  get worst(): Absence | null {
    return ABSENCES.find((absence) => this.#absences.has(absence)) ?? null;
  }

  /** As the guard is told. */
  get bits(): number {
    let bits = 0;
    for (const absence of this.#absences) bits |= GUARD_BITS[absence];
    return bits;
  }
}

export type DeadMan = 'absent' | 'held' | 'released';

const STORE = 'tautline.dead-man';

/** The dead-man input: a key or a pad's button that must be held, if the person or the guard wants one. */
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
      // A browser that keeps nothing: the choice lasts until the page is closed.
    }
  }

  /** The guard asks for it; it does not stop asking within one page. */
  require(): void {
    this.#required = true;
  }

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
