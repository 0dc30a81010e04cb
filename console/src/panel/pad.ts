import { type Calibration, ASKED, calibrationOf } from '../input/calibration';
import type { Gamepads } from '../input/gamepad';
import type { PadState } from '../input/mapping';
import { byId, make, setText } from './element';

const NO_PAD = 'No gamepad or wheel: connect one and press a button on it.';

/** Shows the pad's raw axes and leads through its calibration. */
export class PadPanel {
  readonly #name = byId('pad-name');
  readonly #device = byId('device');
  readonly #axes = byId('pad-axes');
  readonly #asked = byId('pad-asked');
  readonly #calibrate = byId<HTMLButtonElement>('pad-calibrate');
  readonly #next = byId<HTMLButtonElement>('pad-next');
  readonly #cancel = byId<HTMLButtonElement>('pad-cancel');
  readonly #reset = byId<HTMLButtonElement>('pad-reset');
  readonly #deadZone = byId<HTMLInputElement>('pad-dead-zone');
  #calibration: Calibration | null = null;

  constructor(readonly pads: Gamepads) {
    this.#calibrate.addEventListener('click', () => this.#begin());
    this.#next.addEventListener('click', () => this.#advance());
    this.#cancel.addEventListener('click', () => this.#end(''));
    this.#reset.addEventListener('click', () => this.#forget());
    this.#deadZone.addEventListener('change', () => this.#setDeadZone());
  }

  /** The pedals are being waved about: they must not drive. */
  get calibrating(): boolean {
    return this.#calibration !== null;
  }

  /** Once a tick: what moves between two looks must not be missed. */
  observe(): void {
    const pad = this.pads.pad();
    if (pad === null) {
      if (this.#calibration !== null) this.#end('The pad is gone.');
      return;
    }
    this.#calibration?.observe(pad);
  }

  show(): void {
    const pad = this.pads.pad();
    setText(this.#name, pad === null ? NO_PAD : `${pad.id}${pad.mapping === 'standard' ? '' : ' (calibrate it)'}`);
    setText(this.#device, pad === null ? 'keyboard' : 'keyboard and pad');
    this.#calibrate.disabled = pad === null || this.calibrating;
    this.#reset.disabled = pad === null || this.calibrating;
    this.#deadZone.disabled = pad === null;
    if (pad === null) {
      this.#axes.replaceChildren();
      return;
    }
    if (document.activeElement !== this.#deadZone) this.#deadZone.value = String(this.pads.mapping(pad).deadZone);
    this.#showAxes(pad);
  }

  #showAxes(pad: PadState): void {
    while (this.#axes.childElementCount > pad.axes.length) this.#axes.lastElementChild?.remove();
    pad.axes.forEach((value, axis) => {
      const meter = (this.#axes.children[axis] as HTMLMeterElement | undefined)
        ?? this.#axes.appendChild(make('meter', { min: '-1', max: '1', 'aria-label': `axis ${axis}`, title: `axis ${axis}` }));
      meter.value = value;
    });
  }

  #begin(): void {
    const pad = this.pads.pad();
    if (pad === null) return;
    this.#calibration = calibrationOf(pad, this.pads.mapping(pad));
    this.#ask();
  }

  #advance(): void {
    const pad = this.pads.pad();
    const calibration = this.#calibration;
    if (pad === null || calibration === null) return;
    if (!calibration.next(pad)) {
      const step = calibration.step;
      setText(this.#asked, `Nothing moved far enough. ${step === null ? '' : ASKED[step]}`);
      return;
    }
    const mapping = calibration.mapping();
    if (mapping === null) {
      this.#ask();
      return;
    }
    this.pads.remember(pad, mapping);
    this.#end('Calibrated, and kept in this browser.');
  }

  #ask(): void {
    const step = this.#calibration?.step ?? null;
    setText(this.#asked, step === null ? '' : ASKED[step]);
    this.#next.hidden = this.#cancel.hidden = step === null;
  }

  #end(words: string): void {
    this.#calibration = null;
    this.pads.disarm();
    this.#ask();
    setText(this.#asked, words);
  }

  #forget(): void {
    const pad = this.pads.pad();
    if (pad === null) return;
    this.pads.remember(pad, null);
    setText(this.#asked, 'Back to the first guess.');
  }

  #setDeadZone(): void {
    const pad = this.pads.pad();
    if (pad !== null) this.pads.remember(pad, { ...this.pads.mapping(pad), deadZone: Number(this.#deadZone.value) });
    this.#deadZone.blur();
  }
}
