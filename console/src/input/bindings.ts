/** Keys, buttons and sticks that a person has assigned to a machine's axes and actions. */
import type { PadState } from './mapping';

/** A key, a button of a pad, or one side of a pad's axis. */
export type Source =
  | { kind: 'key'; code: string }
  | { kind: 'button'; device: string; button: number }
  | { kind: 'axis'; device: string; axis: number; side: 1 | -1 };

/** Direction of an axis, or action, by its name: numbers may differ in the next description. */
export type Slot = `more ${string}` | `less ${string}` | `action ${string}`;

/** Prefix of the storage keys; a slot follows. */
const STORE = 'tautline.assigned.';
const ON_PICTURE = 'tautline.on-picture.';
/** Share of a pad's axis around 0 that counts as 0. */
const DEAD_ZONE = 0.15;

/** Keys of actions that many machines have, until others are assigned. */
const USUAL: Readonly<Record<string, string>> = {
  'action horn': 'KeyH', 'action lights': 'KeyL', 'action high beam': 'KeyB', 'action left': 'Comma', 'action right': 'Period',
  'action hazard': 'KeyJ',
};

export class Bindings {
  readonly #sources = new Map<Slot, Source | null>();

  constructor(readonly store: Pick<Storage, 'getItem' | 'setItem'>) {}

  /**
   * Returns the source of a slot: the usual key if none was ever assigned, `null` if it has none.
   */
  source(slot: Slot): Source | null {
    if (!this.#sources.has(slot)) this.#sources.set(slot, this.#stored(slot));
    return this.#sources.get(slot)!;
  }

  /**
   * Assigns a source to a slot, `null` for none. The browser keeps it for later visits if it can.
   */
  assign(slot: Slot, source: Source | null): void {
    this.#sources.set(slot, source);
    try {
      this.store.setItem(STORE + slot, JSON.stringify(source));
    } catch {
      // Without storage the assignment lasts until the page is closed.
    }
  }

  /** Returns whether the slot's action or axis has buttons on the picture. */
  isOnPicture(slot: Slot): boolean {
    try {
      return this.store.getItem(ON_PICTURE + slot) === 'true';
    } catch {
      return false;
    }
  }

  /** Shows buttons for the slot's action or axis on the picture, or removes them. */
  setOnPicture(slot: Slot, isShown: boolean): void {
    try {
      this.store.setItem(ON_PICTURE + slot, String(isShown));
    } catch {
      // Without storage no button is shown.
    }
  }

  /** Returns the slots among these that this key moves. */
  slotsOf(code: string, slots: readonly Slot[]): Slot[] {
    return slots.filter((slot) => {
      const source = this.source(slot);
      return source?.kind === 'key' && source.code === code;
    });
  }

  /**
   * Returns how far the slot's source is pressed, 0 to 1; 0 also without a source, or if its device
   * is missing.
   */
  pressed(slot: Slot, isDown: (code: string) => boolean, pads: readonly PadState[]): number {
    const source = this.source(slot);
    if (source === null) return 0;
    if (source.kind === 'key') return isDown(source.code) ? 1 : 0;
    const pad = pads.find(({ id }) => id === source.device);
    const raw = source.kind === 'button' ? pad?.buttons[source.button]?.value : pad?.axes[source.axis];
    if (raw === undefined || !Number.isFinite(raw)) return 0;
    const share = source.kind === 'button' ? raw : Math.max(0, source.side * raw - DEAD_ZONE) / (1 - DEAD_ZONE);
    return Math.min(1, Math.max(0, share));
  }

  #stored(slot: Slot): Source | null {
    const usual = USUAL[slot];
    let text: string | null = null;
    try {
      text = this.store.getItem(STORE + slot);
    } catch {
      // As without an assignment.
    }
    return text === null ? (usual === undefined ? null : { kind: 'key', code: usual }) : parseSource(text);
  }
}

/** Parses a stored source; `null` for none or for invalid text. */
export function parseSource(text: string): Source | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const { kind, code, device, button, axis, side } = value as Record<string, unknown>;
  const isIndex = (number: unknown): number is number => Number.isInteger(number) && (number as number) >= 0;
  if (kind === 'key' && typeof code === 'string' && code !== '') return { kind, code };
  if (typeof device !== 'string') return null;
  if (kind === 'button' && isIndex(button)) return { kind, device, button };
  if (kind === 'axis' && isIndex(axis) && (side === 1 || side === -1)) return { kind, device, axis, side };
  return null;
}
