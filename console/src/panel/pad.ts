import type { Motion } from '../generated/kinds';
import { ASKED, Calibration } from '../input/calibration';
import type { DeviceView, Gamepads } from '../input/gamepad';
import type { Part, Sticks } from '../input/mapping';
import { isTwisted } from '../twist';
import { byId, make, setData, setText } from './element';

/** Elements of one device's entry. */
interface Line {
  item: HTMLElement;
  name: HTMLElement;
  state: HTMLElement;
  axes: HTMLElement;
  use: HTMLButtonElement;
  calibrate: HTMLButtonElement;
  forget: HTMLButtonElement;
  deadZone: HTMLInputElement;
  deadZoneLabel: HTMLElement;
  sticks: HTMLSelectElement;
  sticksLabel: HTMLElement;
}

/** The list of gamepads, wheels and pedals, with their state and calibration. */
export class PadPanel {
  readonly #none = byId('pad-none');
  readonly #list = byId('pad-list');
  readonly #device = byId('device');
  readonly #asked = byId('pad-asked');
  readonly #next = byId<HTMLButtonElement>('pad-next');
  readonly #skip = byId<HTMLButtonElement>('pad-skip');
  readonly #cancel = byId<HTMLButtonElement>('pad-cancel');
  readonly #lines = new Map<number, Line>();
  #calibration: { of: Calibration; index: number; name: string } | null = null;

  constructor(readonly pads: Gamepads) {
    this.#next.addEventListener('click', () => this.#advance((calibration, pad) => calibration.next(pad)));
    this.#skip.addEventListener('click', () => this.#advance((calibration, pad) => calibration.skip(pad)));
    this.#cancel.addEventListener('click', () => this.#end(''));
  }

  /** True if a device is being calibrated; it must not drive. */
  get calibrating(): boolean {
    return this.#calibration !== null;
  }

  /**
   * Samples the device that is being calibrated. Call it once a tick, so that no movement between
   * two updates of the page is missed.
   */
  observe(): void {
    if (this.#calibration === null) return;
    const pad = this.pads.pad(this.#calibration.index);
    if (pad === null) this.#end(`${this.#calibration.name} is disconnected.`);
    else this.#calibration.of.observe(pad);
  }

  show(): void {
    const views = this.pads.views();
    this.#none.hidden = views.length > 0;
    const { words, tone } = inputWords(views);
    setText(this.#device, words);
    setData(this.#device, 'tone', tone);
    for (const [index, { item }] of this.#lines) {
      if (views.some((view) => view.index === index)) continue;
      item.remove();
      this.#lines.delete(index);
    }
    for (const view of views) this.#showDevice(view);
  }

  #showDevice(view: DeviceView): void {
    const line = this.#lines.get(view.index) ?? this.#add(view.index);
    setData(line.item, 'state', view.state);
    setText(line.name, view.name);
    setText(line.state, stateWords(view, this.pads.motion));
    line.use.setAttribute('aria-pressed', String(view.parts.length > 0));
    setText(line.use, view.parts.length > 0 ? 'Set aside' : 'Use');
    line.use.disabled = view.state === 'not known' || view.state === 'unsound' || this.calibrating;
    line.calibrate.disabled = this.calibrating;
    line.forget.disabled = !view.isCalibrated || this.calibrating;
    line.deadZoneLabel.hidden = view.deadZone === null;
    if (view.deadZone !== null && document.activeElement !== line.deadZone) line.deadZone.value = String(view.deadZone);
    line.sticksLabel.hidden = view.sticks === null;
    line.sticks.disabled = this.calibrating;
    if (view.sticks !== null && document.activeElement !== line.sticks) line.sticks.value = view.sticks;
    showAxes(line.axes, view.axes);
  }

  #add(index: number): Line {
    const button = (label: string, act: () => void): HTMLButtonElement => {
      const made = make('button', { type: 'button' }, label);
      made.addEventListener('click', () => {
        // Otherwise Space would press the button again instead of the brake.
        made.blur();
        act();
      });
      return made;
    };
    const use = button('Use', () => this.pads.use(index, use.getAttribute('aria-pressed') !== 'true'));
    const calibrate = button('Calibrate', () => this.#begin(index));
    const forget = button('Forget', () => this.#forget(index));
    const deadZone = make('input', { type: 'range', min: '0', max: '0.3', step: '0.01' });
    deadZone.addEventListener('change', () => {
      this.pads.setDeadZone(index, Number(deadZone.value));
      deadZone.blur();
    });
    const sticks = make('select', { 'data-testid': `pad-sticks-${index}` },
      make('option', { value: 'left' }, 'the left stick'), make('option', { value: 'both' }, 'the right stick'));
    sticks.addEventListener('change', () => {
      this.pads.setSticks(index, sticks.value as Sticks);
      sticks.blur();
    });
    const sticksLabel = make('label', {}, 'turn by ', sticks);
    const [name, state] = [make('b'), make('span', { class: 'pad-state' })];
    const axes = make('div', { class: 'axes', 'aria-label': 'Raw axes' });
    const deadZoneLabel = make('label', {}, 'dead zone ', deadZone);
    const buttons = make('div', { class: 'pad-buttons' }, use, calibrate, forget, sticksLabel, deadZoneLabel);
    const item = make('li', { 'data-testid': `pad-${index}` }, name, state, axes, buttons);
    this.#list.append(item);
    const line = { item, name, state, axes, use, calibrate, forget, deadZone, deadZoneLabel, sticks, sticksLabel };
    this.#lines.set(index, line);
    return line;
  }

  #begin(index: number): void {
    const name = this.pads.views().find((view) => view.index === index)?.name;
    if (name === undefined) return;
    this.#calibration = { of: new Calibration(this.pads.mapping(index), this.pads.motion), index, name };
    this.#ask();
  }

  #advance(answer: (calibration: Calibration, pad: NonNullable<ReturnType<Gamepads['pad']>>) => boolean): void {
    if (this.#calibration === null) return;
    const { of, index, name } = this.#calibration;
    const pad = this.pads.pad(index);
    if (pad === null) return;
    answer(of, pad);
    const mapping = of.mapping();
    if (mapping === null) {
      this.#ask();
      return;
    }
    this.pads.remember(index, mapping);
    this.#end(`${name} is calibrated, and this browser keeps the calibration. Move it to use it.`);
  }

  #ask(): void {
    const calibration = this.#calibration?.of;
    const step = calibration?.step ?? null;
    setText(this.#asked, step === null ? '' : [calibration?.refusal, ASKED[step]].filter((words) => words != null).join(' '));
    this.#next.hidden = this.#cancel.hidden = step === null;
    this.#skip.hidden = calibration?.maySkip !== true;
  }

  #end(words: string): void {
    this.#calibration = null;
    this.pads.disarm();
    this.#ask();
    setText(this.#asked, words);
  }

  #forget(index: number): void {
    this.pads.remember(index, null);
    setText(this.#asked, 'The calibration is forgotten.');
  }
}

/** Summarizes the devices in use, or reports a touched device that needs calibration. */
export function inputWords(views: readonly DeviceView[]): { words: string; tone: string } {
  const used = views.filter(({ parts }) => parts.length > 0).length;
  if (used === 0 && views.some(({ state, wasTouched }) => state === 'not known' && wasTouched)) {
    return { words: 'unknown device: calibrate it', tone: 'warn' };
  }
  return { words: used === 0 ? 'keyboard' : used === 1 ? 'keyboard and 1 device' : `keyboard and ${used} devices`, tone: 'none' };
}

const BRAKE_NEEDS = {
  press: ' Press the brake once: until then its throttle is ignored.',
  'other device': ' No device in use has a brake: until one has, its throttle is ignored.',
} as const;

export function stateWords(
  { state, parts, brakeNeed, needsCentre, isRadio, isCalibrated }: DeviceView, motion: Motion,
): string {
  switch (state) {
    case 'not known':
      return isRadio ? 'A radio, whose model assigns its levers. Calibrate it to drive with it.' : 'Unknown device. Calibrate it to drive with it.';
    case 'ready': return `Ready${isCalibrated ? ', calibrated' : ''}. Move it to use it.`;
    case 'in use': {
      const names = parts.map((part) => partName(part, motion)).join(', ');
      const needs = [needsCentre ? ' Release its sticks and levers once: until then they are ignored.' : '', brakeNeed === null ? '' : BRAKE_NEEDS[brakeNeed]];
      return `In use: ${names}.${needs.join('')}`;
    }
    case 'set aside': return 'Set aside. Press Use to use it again.';
    case 'frozen': return 'It sends nothing. Move it.';
    case 'unsound': return 'It sends no values for its calibrated axes. Calibrate it again.';
  }
}

/** Returns the name of a part: a wheel that steers a car turns other machines. */
function partName(part: Part, motion: Motion): string {
  return part === 'steering' && isTwisted(motion) ? 'turn' : part;
}

function showAxes(box: HTMLElement, axes: readonly number[]): void {
  while (box.childElementCount > axes.length) box.lastElementChild?.remove();
  axes.forEach((value, axis) => {
    const meter = (box.children[axis] as HTMLMeterElement | undefined)
      ?? box.appendChild(make('meter', { min: '-1', max: '1', 'aria-label': `axis ${axis}`, title: `axis ${axis}` }));
    meter.value = Number.isFinite(value) ? value : 0;
  });
}
