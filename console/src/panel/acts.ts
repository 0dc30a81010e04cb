import type { GuardView } from '../guard';
import type { Press } from '../input/keyboard';
import type { DeadManInput } from '../input/presence';
import type { SpeedMode, SpeedSetting } from '../input/set-point';
import type { Speaker } from '../sound';
import { byId, setData } from './element';

/** Buttons of actions that keys also trigger. */
const BUTTONS: readonly { id: string; press: Press }[] = [
  { id: 'act-arm', press: 'arm' }, { id: 'act-reset', press: 'reset' }, { id: 'act-park', press: 'park' },
];

/** The buttons arm, reset and park, and the settings of speed, dead-man input and sound. */
export class ActsPanel {
  readonly #box = byId('acts');
  readonly #arm = byId<HTMLButtonElement>('act-arm');
  readonly #reset = byId<HTMLButtonElement>('act-reset');
  readonly #park = byId<HTMLButtonElement>('act-park');

  constructor(press: (press: Press) => void) {
    for (const { id, press: what } of BUTTONS) {
      const button = byId<HTMLButtonElement>(id);
      button.addEventListener('click', () => {
        // Otherwise Space would press the button again instead of the brake.
        button.blur();
        press(what);
      });
    }
  }

  /**
   * Connects the settings: the speed mode, whether a dead-man input is used, and whether the page
   * plays sounds.
   */
  listen(deadMan: DeadManInput, speed: SpeedSetting, speaker: Speaker): void {
    const mode = byId<HTMLSelectElement>('speed-mode');
    mode.value = speed.mode;
    mode.addEventListener('change', () => {
      speed.mode = mode.value as SpeedMode;
      mode.blur();
    });
    const [wanted, sound] = [byId<HTMLInputElement>('dead-man'), byId<HTMLInputElement>('sound')];
    wanted.checked = deadMan.wanted;
    wanted.addEventListener('change', () => {
      deadMan.wanted = wanted.checked;
      wanted.blur();
    });
    sound.addEventListener('change', () => {
      speaker.muted = !sound.checked;
      sound.blur();
    });
  }

  /** Updates the buttons. `guard` is `null` if there is none, or its state is not live. */
  show(guard: GuardView | null): void {
    this.#box.hidden = guard === null;
    this.#arm.hidden = guard?.mode !== 'held' || guard.latched;
    this.#reset.hidden = guard?.mode !== 'held' || !guard.latched;
    this.#park.hidden = guard === null || guard.mode === 'held' || guard.mode === 'manoeuvre';
    setData(this.#arm, 'ready', String(guard?.blockers.length === 0));
  }
}
