import type { FleetView, VehicleView } from '../report';
import type { FleetWord } from '../generated/kinds';
import { byId, make, setData, setText } from './element';
import { UNKNOWN, ms } from './format';

const DAY_MS = 86_400_000;

const REFUSALS: Readonly<Record<FleetWord, string>> = {
  unknown: 'unknown: no vehicle has this name',
  taken: 'taken: another operator drives it',
  moving: 'moving: it must be held before it can be released',
  busy: 'busy: another vehicle is already picked',
  refused: 'refused: the switchboard does not allow this operator to drive it',
};

/** Describes whether a vehicle is free, who drives it, or since when it is away. */
export function stateWords({ state, driver, sinceUnixMs }: VehicleView, nowUnixMs: number): string {
  const since = sinceUnixMs === null ? '' : ` since ${sinceWords(sinceUnixMs, nowUnixMs)}`;
  switch (state) {
    case 'free':
      return 'free';
    case 'own':
      return `yours${since}`;
    case 'taken':
      return `driven by ${driver ?? 'another operator'}${since}`;
    case 'away':
      return `away${since}${driver === null ? '' : `, reserved for ${driver}`}`;
  }
}

/** Formats a time as the time of day, or as the date if it is more than a day ago. */
export function sinceWords(unixMs: number, nowUnixMs: number): string {
  const at = new Date(unixMs);
  return nowUnixMs - unixMs < DAY_MS
    ? at.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
    : at.toLocaleDateString();
}

/** Describes how many of the vehicle's links have a known address. */
export function linkWords({ links, linkCount }: Pick<VehicleView, 'links' | 'linkCount'>): string {
  if (linkCount === 0) return UNKNOWN;
  const all = `${linkCount} link${linkCount === 1 ? '' : 's'}`;
  return links === 0 || links >= linkCount ? all : `${links} of ${all}`;
}

/**
 * Returns whether the vehicle can be picked. One that is away and has a driver is reserved for that
 * driver.
 */
export function mayPick({ state, driver }: VehicleView): boolean {
  return state === 'free' || state === 'own' || state === 'away' && driver === null;
}

/** The list of vehicles, in place of the picture, until one is picked. */
export class Fleet {
  readonly #panel = byId('fleet');
  readonly #list = byId('fleet-list');
  readonly #none = byId('fleet-none');
  readonly #refused = byId('fleet-refused');
  readonly #switchboard = byId('fleet-switchboard');
  readonly #stage = this.#panel.closest<HTMLElement>('.stage')!;
  readonly #pick: (vehicle: string) => void;
  #rows: Row[] = [];
  #shape = '';

  constructor(pick: (vehicle: string) => void) {
    this.#pick = pick;
    this.#list.addEventListener('keydown', (event) => this.#step(event));
  }

  /**
   * `fleet` is `null` if the operator's process lists no vehicles. `drives` means that this console
   * may pick one.
   */
  show(fleet: FleetView | null, drives: boolean): void {
    const choosing = fleet !== null && fleet.picked === null;
    setData(this.#stage, 'choosing', String(choosing));
    this.#panel.hidden = !choosing;
    if (!choosing) return;
    const { vehicles, isReached, roundTripMs, refused } = fleet;
    const shape = JSON.stringify(vehicles.map(({ name }) => name));
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#rows = vehicles.map(({ name }) => new Row(name, () => this.#pick(name)));
      this.#list.replaceChildren(...this.#rows.map(({ element }) => element));
    }
    const now = Date.now();
    this.#rows.forEach((row, index) => row.show(vehicles[index]!, drives && isReached, now));
    this.#none.hidden = vehicles.length > 0;
    setText(this.#none, isReached ? 'The switchboard lists no vehicle.' : 'The switchboard has sent no list yet.');
    this.#refused.hidden = refused === null;
    setText(this.#refused, refused === null ? '' : `${refused.vehicle} – ${REFUSALS[refused.word]}.`);
    setData(this.#switchboard, 'tone', isReached ? 'good' : 'bad');
    setText(this.#switchboard, isReached ? `switchboard, round trip ${ms(roundTripMs)} ms` : 'switchboard not reached');
    setData(this.#panel, 'live', String(isReached));
  }

  /** Moves the focus up or down to the next vehicle that can be picked. */
  #step(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.code];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const buttons = this.#rows.map(({ button }) => button).filter((button) => !button.disabled);
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    buttons[at + step]?.focus();
  }
}

class Row {
  readonly #place = make('span', { class: 'fleet-place' });
  readonly #state = make('span', { class: 'chip' });
  readonly #links = make('span', { class: 'fleet-links', title: 'Links with a known address, out of all links of the vehicle' });
  readonly #roundTrip = make('span', { class: 'fleet-rtt', title: 'Round trip between the vehicle and the switchboard' });
  readonly button = make('button', { type: 'button', class: 'fleet-row' });
  readonly element = make('li', {}, this.button);

  constructor(name: string, pick: () => void) {
    this.button.dataset['testid'] = `vehicle-${name}`;
    const title = make('span', { class: 'fleet-name' }, make('b', {}, name), this.#place);
    this.button.append(title, this.#state, this.#links, this.#roundTrip);
    this.button.addEventListener('click', () => {
      // The next keys pressed are driving keys, not for this button.
      this.button.blur();
      pick();
    });
  }

  show(vehicle: VehicleView, enabled: boolean, nowUnixMs: number): void {
    const disabled = !enabled || !mayPick(vehicle);
    if (this.button.disabled !== disabled) this.button.disabled = disabled;
    setText(this.#place, vehicle.place ?? '');
    setText(this.#state, stateWords(vehicle, nowUnixMs));
    setData(this.#state, 'tone', { free: 'good', own: 'good', taken: 'warn', away: '' }[vehicle.state]);
    setText(this.#links, linkWords(vehicle));
    setData(this.#links, 'some', String(vehicle.links > 0 && vehicle.links < vehicle.linkCount));
    setText(this.#roundTrip, vehicle.roundTripMs === null ? UNKNOWN : `${ms(vehicle.roundTripMs)} ms`);
  }
}
