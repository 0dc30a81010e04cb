import { KEYS } from '../input/keyboard';
import { byId, make } from './element';

/** All keys, shown on F1 and under Controls. It takes no focus, so driving continues. */
export class Help {
  readonly #dialog = byId<HTMLDialogElement>('help');

  constructor() {
    for (const id of ['keys', 'help-keys']) byId(id).replaceChildren(...KEYS.map(row));
    byId('help-close').addEventListener('click', () => this.#dialog.close());
    byId('help-open').addEventListener('click', (event) => {
      (event.currentTarget as HTMLElement).blur();
      this.toggle();
    });
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

function row({ keys, does }: (typeof KEYS)[number]): HTMLElement {
  const names = keys.flatMap((key) => [make('kbd', {}, key), ' ']);
  return make('div', {}, make('dt', {}, ...names), make('dd', {}, does));
}
