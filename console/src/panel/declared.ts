import { type Action, type Axis, type Description, type ValueInfo, levelOf } from '../declared';
import type { Slot } from '../input/bindings';
import { byId, make, setData, setText } from './element';
import { UNKNOWN, signed } from './format';

/** State of a request that this page has made, or of the machine's last answer to it. */
export type Asked = 'none' | 'pending' | 'done' | 'refused';

/** Content of the card of the declared controls. */
export interface DeclaredView {
  /** `null` if the machine declares nothing, or nothing is known of it. */
  description: Description | null;
  /** Set points by number, as the guard applies them; NaN: none. */
  setPoints: readonly number[];
  /** Reported positions and speeds by number; NaN: unknown. */
  measured: readonly number[];
  /** True if the machine reports the action as on. */
  isOn(index: number): boolean;
  /** True if this page asks for the action to be on. */
  isWanted(index: number): boolean;
  asked(index: number): Asked;
  /** Newest reading of a value; `null` if it is unknown. */
  reading(index: number): number | string | null;
  /** True if the slot's action or axis has buttons on the picture too. */
  isOnPicture(slot: Slot): boolean;
  /** True while the guard lets this console drive. */
  driven: boolean;
}

export interface DeclaredEvents {
  setPosition(index: number, position: number): void;
  push(index: number, share: number): void;
  press(index: number, isDown: boolean): void;
  toggle(index: number): void;
  request(index: number): void;
}

interface AxisLine {
  slider: HTMLInputElement;
  measured: HTMLElement;
  mark: HTMLElement;
  buttons: readonly HTMLButtonElement[];
  /** Buttons of the axis on the picture, with its name and position between them. */
  onPicture: HTMLElement;
  pictureMeasured: HTMLElement;
}

/** The card with the axes, actions and values that the machine declares. */
export class DeclaredPanel {
  readonly #card = byId('declared');
  readonly #axes = byId('declared-axes');
  readonly #actions = byId('declared-actions');
  readonly #values = byId('declared-values');
  #revision: number | null = null;
  #axisLines: AxisLine[] = [];
  readonly #picture = byId('picture-actions');
  #actionButtons: HTMLButtonElement[] = [];
  /** Buttons of the actions on the picture. */
  #pictureButtons: HTMLButtonElement[] = [];
  #valueCells: { row: HTMLElement; cell: HTMLElement }[] = [];

  constructor(readonly events: DeclaredEvents) {}

  show(view: DeclaredView): void {
    const { description } = view;
    this.#card.hidden = this.#picture.hidden = description === null;
    if (description === null) return;
    if (description.revision !== this.#revision) this.#build(description);
    description.axes.forEach((axis, index) => this.#showAxis(axis, index, view));
    description.actions.forEach((action, index) => this.#showAction(action, index, view));
    description.values.forEach((value, index) => this.#showValue(value, index, view));
  }

  #build({ revision, axes, actions, values }: Description): void {
    this.#revision = revision;
    this.#axisLines = axes.map((axis, index) => this.#axisLine(axis, index));
    this.#actionButtons = actions.map((action, index) => this.#actionButton(action, index, 'action'));
    this.#pictureButtons = actions.map((action, index) => this.#actionButton(action, index, 'picture-action'));
    this.#actions.replaceChildren(...this.#actionButtons);
    this.#picture.replaceChildren(...this.#axisLines.map(({ onPicture }) => onPicture), ...this.#pictureButtons);
    this.#valueCells = values.map(({ name, form }, index) => {
      const cell = make('b', { 'data-testid': `value-${index}` }, UNKNOWN);
      return { row: make('div', { 'data-form': form }, make('span', {}, name), cell), cell };
    });
    this.#values.replaceChildren(...this.#valueCells.map(({ row }) => row));
  }

  #axisLine(axis: Axis, index: number): AxisLine {
    const isPosition = axis.form === 'position';
    const slider = make('input', {
      type: 'range', min: String(axis.low), max: String(axis.high), step: 'any', 'aria-label': axis.name,
      'data-testid': `axis-${index}`,
    });
    slider.addEventListener('input', () => this.events.setPosition(index, Number(slider.value)));
    slider.addEventListener('change', () => slider.blur());
    slider.hidden = !isPosition;
    const button = (side: 1 | -1, id: string): HTMLButtonElement => holdButton(side < 0 ? '−' : '+',
      `${axis.name} ${side < 0 ? 'less' : 'more'}`, (isDown) => this.events.push(index, isDown ? side : 0),
      `${id}-${side < 0 ? 'less' : 'more'}-${index}`);
    const [less, more, lessHere, moreHere] = [button(-1, 'axis'), button(1, 'axis'), button(-1, 'picture-axis'), button(1, 'picture-axis')];
    const pictureMeasured = make('output');
    const onPicture = make('div', { class: 'picture-axis', role: 'group', 'aria-label': axis.name },
      lessHere, make('span', {}, axis.name, pictureMeasured), moreHere);
    const [measured, mark] = [make('output', { 'data-testid': `axis-measured-${index}` }), make('i', { class: 'axis-mark' })];
    const well = make('div', { class: 'axis-well' }, mark, slider);
    const line = make('div', { class: 'axis-line' }, make('span', { class: 'axis-name' }, axis.name), less, well, more, measured);
    if (index === 0) this.#axes.replaceChildren();
    this.#axes.append(line);
    return { slider, measured, mark, buttons: [less, more, lessHere, moreHere], onPicture, pictureMeasured };
  }

  #actionButton({ name, form }: Action, index: number, id: string): HTMLButtonElement {
    if (form === 'momentary') return holdButton(name, name, (isDown) => this.events.press(index, isDown), `${id}-${index}`);
    const button = make('button', { type: 'button', 'data-testid': `${id}-${index}` }, labelOf(name));
    button.addEventListener('click', () => {
      if (form === 'switch') this.events.toggle(index);
      else this.events.request(index);
    });
    return button;
  }

  #showAxis(axis: Axis, index: number, { setPoints, measured, driven, isOnPicture }: DeclaredView): void {
    const { slider, measured: output, mark, buttons, onPicture, pictureMeasured } = this.#axisLines[index]!;
    const [setPoint, now] = [setPoints[index] ?? NaN, measured[index] ?? NaN];
    onPicture.hidden = !isOnPicture(`more ${axis.name}`);
    for (const place of [output, pictureMeasured]) setText(place, `${number(now, axis)} ${axis.unit}`.trimEnd());
    const shown = Number.isNaN(setPoint) ? now : setPoint;
    if (document.activeElement !== slider && !Number.isNaN(shown)) slider.value = String(shown);
    slider.disabled = !driven;
    for (const button of buttons) button.disabled = !driven;
    mark.hidden = Number.isNaN(now);
    mark.style.left = `${(((now - axis.low) / (axis.high - axis.low)) * 100).toFixed(1)}%`;
  }

  #showAction(action: Action, index: number, view: DeclaredView): void {
    const onPicture = this.#pictureButtons[index]!;
    onPicture.hidden = !view.isOnPicture(`action ${action.name}`);
    for (const button of [this.#actionButtons[index]!, onPicture]) showState(button, action, index, view);
  }

  #showValue(info: ValueInfo, index: number, view: DeclaredView): void {
    const { row, cell } = this.#valueCells[index]!;
    const reading = view.reading(index);
    setText(cell, typeof reading === 'number' ? `${reading.toLocaleString('en-GB', { maximumFractionDigits: 2 })} ${info.unit}`.trimEnd() : reading ?? UNKNOWN);
    setData(row, 'level', levelOf(info, typeof reading === 'number' ? reading : null));
  }
}

/** Shows on a button whether its action is on, or what became of the request. */
function showState(button: HTMLButtonElement, { form, allowedHeld }: Action, index: number, view: DeclaredView): void {
  button.disabled = !view.driven && !allowedHeld && !view.isWanted(index);
  if (form === 'request') {
    setData(button, 'asked', view.asked(index));
    return;
  }
  button.setAttribute('aria-pressed', String(view.isOn(index)));
  setData(button, 'waits', String(view.isWanted(index) !== view.isOn(index)));
}

/** Returns the label of an action: indicators have arrows. */
function labelOf(name: string): string {
  return name === 'left' ? '◀ left' : name === 'right' ? 'right ▶' : name;
}

/** Formats a number of an axis with a hundredth of its range as the last digit. */
function number(value: number, { low, high }: Axis): string {
  if (Number.isNaN(value)) return UNKNOWN;
  return signed(value, Math.max(0, Math.min(3, Math.ceil(-Math.log10((high - low) / 100)))));
}

/** Returns a button that reports when it is held down and when it is released, by any pointer. */
function holdButton(text: string, label: string, held: (isDown: boolean) => void, testid?: string): HTMLButtonElement {
  const button = make('button', { type: 'button', 'aria-label': label, ...(testid === undefined ? {} : { 'data-testid': testid }) }, text);
  button.addEventListener('pointerdown', (event) => {
    button.setPointerCapture(event.pointerId);
    held(true);
  });
  for (const name of ['pointerup', 'pointercancel', 'lostpointercapture', 'blur']) button.addEventListener(name, () => held(false));
  return button;
}
