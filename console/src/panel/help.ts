import type { Motion } from '../generated/kinds';
import { type KeyLine, keysOf } from '../input/keyboard';
import { byId, make } from './element';

/** All keys, shown on F1 and under Controls. It takes no focus, so driving continues. */
export class Help {
  readonly #dialog = byId<HTMLDialogElement>('help');

  /** Keys that are shown. */
  #shown = '';

  constructor() {
    this.show('ackermann', []);
    byId('help-close').addEventListener('click', () => this.#dialog.close());
    byId('help-open').addEventListener('click', (event) => {
      (event.currentTarget as HTMLElement).blur();
      this.toggle();
    });
  }

  /** Shows the keys of this kind of machine, and those that are `assigned` to its own controls. */
  show(motion: Motion, assigned: readonly KeyLine[]): void {
    const lines = [...keysOf(motion), ...assigned];
    const shown = JSON.stringify(lines);
    if (shown === this.#shown) return;
    this.#shown = shown;
    for (const id of ['keys', 'help-keys']) byId(id).replaceChildren(...lines.map(row));
  }

  toggle(): void {
    if (this.#dialog.open) {
      this.#dialog.close();
      return;
    }
    this.#dialog.show();
    // A dialog focuses its first button when it opens, and Space would press it.
    (document.activeElement as HTMLElement | null)?.blur();
  }
}

function row({ keys, does }: KeyLine): HTMLElement {
  const names = keys.flatMap((key) => [make('kbd', {}, key), ' ']);
  return make('div', {}, make('dt', {}, ...names), make('dd', {}, does));
}
