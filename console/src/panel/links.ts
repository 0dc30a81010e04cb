import { LinkState } from '../message/link-state';
import type { LinkView, SnapshotView, StatusView } from '../report';
import { byId, make, setData, setText } from './element';
import { UNKNOWN, megabits, ms, percent } from './format';
import { Sparkline } from './sparkline';

/** Cuts or restores the emulated link of this index. */
export type CutLink = (index: number, cut: boolean) => void;

const STATE_WORDS: Readonly<Record<LinkState, string>> = {
  [LinkState.Validating]: 'validating',
  [LinkState.Up]: 'up',
  [LinkState.Silent]: 'silent',
};
/** Time between two points of the charts. */
const SAMPLE_MS = 500;

/** The table of links, with two rows for each, and buttons to cut emulated links. */
export class Links {
  readonly #table = byId('links');
  readonly #body = byId<HTMLTableSectionElement>('link-rows');
  readonly #emulated = byId('emulated');
  #rows: Row[] = [];
  #switches: Switch[] = [];
  #shape = '';
  #sampledAtMs = 0;

  constructor(readonly cut: CutLink) {}

  /** Shows all figures as unknown, because they are not live. */
  fade(): void {
    setData(this.#body, 'live', 'false');
    for (const row of this.#rows) row.fade();
  }

  /** Shows the direction from the vehicle, in which `vehicle` sends and `operator` receives. */
  show(status: StatusView, operator: SnapshotView | null, vehicle: SnapshotView | null, nowMs: number): void {
    setData(this.#body, 'live', 'true');
    const links = operator?.links ?? [];
    this.#arrange(status, links);
    const sample = nowMs - this.#sampledAtMs >= SAMPLE_MS;
    if (sample) this.#sampledAtMs = nowMs;
    this.#rows.forEach((row, index) => {
      const link = links[index]!;
      row.show(link, vehicle?.links.find((other) => other.link === link.link) ?? null);
      if (sample) row.sample(link);
    });
    this.#switches.forEach((cutter, index) => cutter.show(status.emulatedLinks[index]!.cut));
    if (sample) this.#draw();
  }

  #draw(): void {
    const most = this.#rows.map((row) => row.sparkline.most);
    const rateMax = Math.max(...most.map((each) => each.rateBps));
    const owdMax = Math.max(...most.map((each) => each.owdMs));
    for (const row of this.#rows) row.sparkline.draw(rateMax, owdMax);
  }

  /** Rebuilds rows and buttons if the set of links has changed. */
  #arrange(status: StatusView, links: LinkView[]): void {
    const shape = JSON.stringify([
      links.map((link) => [link.link, link.name]), status.emulatedLinks.map((link) => link.name)]);
    if (shape === this.#shape) return;
    this.#shape = shape;
    this.#rows = links.map((link) => new Row(link));
    this.#body.replaceChildren(...this.#rows.flatMap((row) => row.elements));
    if (this.#rows.length === 0) {
      const cell = make('td', { colspan: '7' }, 'no link yet');
      this.#body.append(make('tr', { class: 'none' }, cell));
    }
    this.#switches = status.emulatedLinks.map((link, index) => new Switch(index, link.name, this.cut));
    this.#emulated.replaceChildren();
    status.emulatedLinks.forEach((link, index) => this.#place(link.name, index, links));
    this.#emulated.hidden = this.#emulated.childElementCount === 0;
    const hasCuts = this.#rows.some((row) => row.action.childElementCount > 0);
    setData(this.#table, 'cuts', String(hasCuts));
  }

  /**
   * Adds the buttons to the row of the link with this name, or below the table if there is none.
   */
  #place(name: string, index: number, links: LinkView[]): void {
    const { element } = this.#switches[index]!;
    const row = this.#rows[links.findIndex((link) => link.name === name)];
    if (row !== undefined && row.action.childElementCount === 0) row.action.append(element);
    else this.#emulated.append(make('span', {}, name, element));
  }
}

/** The two rows of a link: its figures, and the texts below them. */
class Row {
  readonly #name = make('span', { class: 'name' });
  readonly #way = make('td', {}, this.#name);
  readonly #rate = make('td');
  readonly #rtt = make('td');
  readonly #owd = make('span');
  readonly #jitter = make('small');
  readonly #loss = make('td');
  readonly #state = make('span', { class: 'state' });
  readonly #granted = make('span');
  readonly #cause = make('span');
  readonly #words = make('td', { colspan: '5' }, this.#state, this.#granted, this.#cause);
  readonly action = make('td', { rowspan: '2', class: 'action' });
  readonly sparkline: Sparkline;
  readonly elements: readonly HTMLTableRowElement[];

  constructor(link: LinkView) {
    const testId = (part: string): string => `link-${link.link}-${part}`;
    this.#state.dataset['testid'] = testId('state');
    this.#rate.dataset['testid'] = testId('rate');
    this.#rtt.dataset['testid'] = testId('rtt');
    this.#owd.dataset['testid'] = testId('owd');
    this.#loss.dataset['testid'] = testId('loss');
    this.#cause.dataset['testid'] = testId('cause');
    const canvas = make('canvas', {
      role: 'img', 'aria-label': `${link.name}: received rate and one-way delay over the last 30 s`,
    });
    this.sparkline = new Sparkline(canvas);
    this.elements = [
      make('tr', { 'data-testid': `link-${link.link}` },
        this.#way,
        this.#rate,
        this.#rtt,
        make('td', {}, this.#owd, this.#jitter),
        this.#loss,
        make('td', { rowspan: '2' }, canvas),
        this.action),
      make('tr', { class: 'words' }, this.#words),
    ];
  }

  show(link: LinkView, sender: LinkView | null): void {
    this.#setState(STATE_WORDS[link.state]);
    setText(this.#name, link.name);
    setText(this.#state, `${STATE_WORDS[link.state]}${detour(link)}`);
    this.#way.title = `${link.name}: ${link.relayed ? 'through a relay' : 'direct'}`;
    setText(this.#rate, megabits(link.receivedBps));
    setText(this.#granted, sender === null ? '' : `granted ${megabits(sender.grantedBps)} Mbit/s`);
    const control = sender?.control ?? null;
    setText(this.#cause, control === null ? '' : control.cause);
    this.#words.title = sender === null ? '' : rateControl(sender);
    setText(this.#rtt, ms(link.rttMs));
    setText(this.#owd, ms(link.owdMs));
    setText(this.#jitter, link.jitterMs === null ? '' : `±${ms(link.jitterMs)}`);
    setText(this.#loss, link.state === LinkState.Validating ? UNKNOWN : `${percent(link.lossIn)}%`);
    const loss = link.lossIn ?? 0;
    setData(this.#loss, 'loss', loss > 0.1 ? 'much' : loss > 0.01 ? 'some' : 'little');
  }

  fade(): void {
    this.#setState('unknown');
    setText(this.#state, 'not known');
    for (const cell of [this.#rate, this.#rtt, this.#owd, this.#loss]) setText(cell, UNKNOWN);
    for (const cell of [this.#granted, this.#cause, this.#jitter]) setText(cell, '');
    this.#words.title = '';
  }

  #setState(state: string): void {
    for (const row of this.elements) setData(row, 'state', state);
  }

  sample(link: LinkView): void {
    const up = link.state === LinkState.Up;
    this.sparkline.push({ rateBps: link.receivedBps, owdMs: up ? link.owdMs : null });
  }
}

/** Describes the inputs of rate control at the sending end. */
function rateControl({ grantedBps, control }: LinkView): string {
  if (control === null) return '';
  return `granted ${megabits(grantedBps)} Mbit/s, delivered ${megabits(control.deliveredBps)} Mbit/s, `
    + `queueing delay ${ms(control.queueingMs)} ms, last change: ${control.cause}`;
}

/**
 * Describes a relayed link, with the round-trip time that the relay adds compared with a direct
 * link; empty if the link is direct.
 */
function detour(link: LinkView): string {
  if (!link.relayed) return '';
  return link.detourMs === null ? ', relayed' : `, relayed: +${ms(link.detourMs)} ms`;
}

/** Two buttons, one of them shown: Cut while the link works, Restore while it is cut. */
class Switch {
  readonly #cut: HTMLButtonElement;
  readonly #restore: HTMLButtonElement;
  readonly element: HTMLElement;

  constructor(index: number, name: string, act: CutLink) {
    const button = (word: 'Cut' | 'Restore'): HTMLButtonElement => {
      const kind = word.toLowerCase();
      const id = `${kind}-${index}`;
      const made = make('button', { type: 'button', id, class: kind, 'data-testid': id, 'aria-label': `${word} ${name}` }, word);
      made.addEventListener('click', () => {
        // Otherwise Space would press the button again instead of the brake.
        made.blur();
        act(index, word === 'Cut');
      });
      return made;
    };
    this.#cut = button('Cut');
    this.#restore = button('Restore');
    this.element = make('span', {}, this.#cut, this.#restore);
    this.show(false);
  }

  show(cut: boolean): void {
    this.#cut.hidden = cut;
    this.#restore.hidden = !cut;
  }
}
