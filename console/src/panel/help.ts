import type { Motion } from '../generated/kinds';
import { type KeyLine, keysOf } from '../input/keyboard';
import { byId, make } from './element';

/** All keys, shown on F1 and under Controls. It takes no focus, so driving continues. */
export class Help {
  readonly #dialog = byId<HTMLDialogElement>('help');

  #motion: Motion | null = null;

  constructor() {
    this.show('ackermann');
    byId('help-close').addEventListener('click', () => this.#dialog.close());
    byId('help-open').addEventListener('click', (event) => {
      (event.currentTarget as HTMLElement).blur();
      this.toggle();
    });
  }

  /** Shows the keys of this kind of machine. */
  show(motion: Motion): void {
    if (motion === this.#motion) return;
    this.#motion = motion;
    for (const id of ['keys', 'help-keys']) byId(id).replaceChildren(...keysOf(motion).map(row));
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
