import type { Description } from '../declared';
import type { Bindings, Slot } from './bindings';
import type { PadState } from './mapping';

/** Position below which an assigned key, button or stick counts as released. */
const RELEASED = 0.05;

/** Positions of the keys, buttons and sticks that are assigned to axes and actions. */
export interface Levers {
  /** Position of each axis, -1 to 1. */
  axes: number[];
  /** Numbers of the actions whose source is pressed. */
  held: ReadonlySet<number>;
  /** Numbers of the actions whose button went down; keys report that by themselves. */
  pressed: readonly number[];
}

/**
 * Reads the assigned sources. One counts only once it was seen released: a pedal may rest at an
 * end, and a key that was held during an absence must not act after it.
 */
export class DeclaredLevers {
  readonly #ready = new Set<Slot>();
  #held: ReadonlySet<number> = new Set();

  constructor(readonly bindings: Bindings) {}

  /** Ignores every source until it was released. */
  release(): void {
    this.#ready.clear();
  }

  /** Ignores what moves axes until it was released: nothing may move them now. */
  releaseAxes(): void {
    for (const slot of this.#ready) if (!slot.startsWith('action ')) this.#ready.delete(slot);
  }

  read({ axes, actions }: Description, isDown: (code: string) => boolean, pads: readonly PadState[]): Levers {
    const position = (slot: Slot): number => {
      const share = this.bindings.pressed(slot, isDown, pads);
      if (share < RELEASED) this.#ready.add(slot);
      return this.#ready.has(slot) ? share : 0;
    };
    const before = this.#held;
    const held = new Set(actions.flatMap(({ name }, index) => (position(`action ${name}`) > 0.5 ? [index] : [])));
    this.#held = held;
    const byKey = (index: number): boolean => this.bindings.source(`action ${actions[index]!.name}`)?.kind === 'key';
    return {
      axes: axes.map(({ name }) => position(`more ${name}`) - position(`less ${name}`)),
      held,
      pressed: [...held].filter((index) => !before.has(index) && !byKey(index)),
    };
  }
}
