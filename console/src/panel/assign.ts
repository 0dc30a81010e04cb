import type { Description } from '../declared';
import type { Bindings, Slot, Source } from '../input/bindings';
import { Capture, drivesBy, sourceWords } from '../input/capture';
import type { Gamepads } from '../input/gamepad';
import { type KeyLine, hasFunction } from '../input/keyboard';
import { byId, make, setText } from './element';

/** Time after which an assignment without a movement ends. */
const WAITS_MS = 10_000;

/** Returns the keys that are assigned to a machine's own controls, for the help. */
export function assignedKeys({ axes, actions }: Description, bindings: Bindings): KeyLine[] {
  const line = (slot: Slot, does: string): KeyLine[] => {
    const source = bindings.source(slot);
    return source?.kind === 'key' ? [{ keys: [sourceWords(source)], does }] : [];
  };
  return [
    ...axes.flatMap(({ name }) => [...line(`more ${name}`, `${name} +`), ...line(`less ${name}`, `${name} −`)]),
    ...actions.flatMap(({ name, form }) => line(`action ${name}`, form === 'momentary' ? `${name}, while held` : name)),
  ];
}

/** The list of keys, buttons and sticks of a machine's axes and actions, under Controls. */
export class AssignPanel {
  readonly #box = byId('assign');
  readonly #list = byId('assign-list');
  readonly #asked = byId('assign-asked');
  readonly #lines = new Map<Slot, { source: HTMLElement; clear: HTMLButtonElement }>();
  #revision: number | null = null;
  #capture: { slot: Slot; of: Capture; sinceMs: number } | null = null;

  constructor(readonly bindings: Bindings, readonly pads: Gamepads) {
    // Before the page's own keys, which must not act on the key to assign.
    window.addEventListener('keydown', (event) => this.#key(event), { capture: true });
  }

  /** True while a person presses what is to be assigned; nothing must drive. */
  get capturing(): boolean {
    return this.#capture !== null;
  }

  /** Samples the devices; call it once a tick. */
  observe(nowMs: number): void {
    if (this.#capture === null) return;
    const source = this.#capture.of.observe(this.pads.live(nowMs));
    if (source !== null) this.#take(source);
    else if (nowMs - this.#capture.sinceMs > WAITS_MS) this.#end('');
  }

  show(description: Description | null): void {
    this.#box.hidden = description === null || description.axes.length + description.actions.length === 0;
    if (description === null) return;
    if (description.revision !== this.#revision) this.#build(description);
    for (const [slot, { source, clear }] of this.#lines) {
      const assigned = this.bindings.source(slot);
      setText(source, sourceWords(assigned));
      clear.disabled = assigned === null;
    }
  }

  #build({ revision, axes, actions }: Description): void {
    this.#revision = revision;
    this.#lines.clear();
    const slots = [
      ...axes.flatMap(({ name }): [Slot, string][] => [[`more ${name}`, `${name} +`], [`less ${name}`, `${name} −`]]),
      ...actions.map(({ name }): [Slot, string] => [`action ${name}`, name]),
    ];
    this.#list.replaceChildren(...slots.map(([slot, words]) => this.#line(slot, words)));
  }

  #line(slot: Slot, words: string): HTMLElement {
    const source = make('b');
    const assign = make('button', { type: 'button', 'data-testid': `assign-${slot.replaceAll(' ', '-')}` }, 'Assign');
    assign.addEventListener('click', () => {
      assign.blur();
      const nowMs = performance.now();
      this.#capture = { slot, of: new Capture(this.pads.live(nowMs)), sinceMs: nowMs };
      setText(this.#asked, `${words}: press a key or button, or push a stick. Esc cancels.`);
    });
    const clear = make('button', { type: 'button' }, 'Clear');
    clear.addEventListener('click', () => {
      clear.blur();
      this.bindings.assign(slot, null);
    });
    this.#lines.set(slot, { source, clear });
    // One choice shows both directions of an axis.
    const choice = slot.startsWith('less ') ? make('span') : this.#pictureChoice(slot);
    return make('li', {}, make('span', {}, words), choice, source, assign, clear);
  }

  /** Returns the choice whether an action or axis has buttons on the picture. */
  #pictureChoice(slot: Slot): HTMLElement {
    const choice = make('input', { type: 'checkbox', 'data-testid': `on-picture-${slot.replaceAll(' ', '-')}` });
    choice.checked = this.bindings.isOnPicture(slot);
    choice.addEventListener('change', () => {
      this.bindings.setOnPicture(slot, choice.checked);
      choice.blur();
    });
    return make('label', { title: 'Show buttons on the picture' }, choice, ' on picture');
  }

  #key(event: KeyboardEvent): void {
    if (this.#capture === null) return;
    // The emergency stop keeps its function.
    if (event.code === 'Escape') {
      this.#end('');
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
    if (event.repeat || event.metaKey || event.ctrlKey || event.altKey) return;
    if (hasFunction(event.code)) setText(this.#asked, 'That key has a function already. Press another one.');
    else this.#take({ kind: 'key', code: event.code });
  }

  #take(source: Source): void {
    const { slot } = this.#capture!;
    if (source.kind !== 'key') {
      const device = this.pads.views().find(({ index }) => this.pads.pad(index)?.id === source.device);
      if (device !== undefined && drivesBy(this.pads.mapping(device.index), source)) {
        setText(this.#asked, `That is used for driving already (${sourceWords(source)}). Use another one.`);
        this.#capture = { ...this.#capture!, of: new Capture(this.pads.live(performance.now())) };
        return;
      }
    }
    this.bindings.assign(slot, source);
    this.#end(`Assigned: ${sourceWords(source)}. This browser keeps it.`);
  }

  #end(words: string): void {
    this.#capture = null;
    this.pads.disarm();
    setText(this.#asked, words);
  }
}
