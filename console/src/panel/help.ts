import { KEYS } from '../input/keyboard';
import { byId, make } from './element';

/** Every key, on F1 and under Controls. It takes no focus: driving goes on below it. */
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
    // Opened, a dialog takes the focus to its first button, where Space would press it.
    (document.activeElement as HTMLElement | null)?.blur();
  }
}

function row({ keys, does }: (typeof KEYS)[number]): HTMLElement {
  const names = keys.flatMap((key) => [make('kbd', {}, key), ' ']);
  return make('div', {}, make('dt', {}, ...names), make('dd', {}, does));
}
