import type { ChannelView, DelaysView, LinkView, SnapshotView } from '../report';
import {
  PACKETS, RECEIVED_DATAGRAMS, RECEIVED_UNITS, SENT_DATAGRAMS, SENT_UNITS,
  type Counter, type LinkCount, type UnitCount,
} from '../stats';
import { byId, make, setData, setText } from './element';
import { UNKNOWN, count, kilobytes, megabits, ms, percent } from './format';

/** One row of a table. `cells` has a text for each column. */
export interface Line {
  name: string;
  unit: string;
  hint: string;
  cells: string[];
  /** True if a line separates it from the row above. */
  starts: boolean;
  /** True if every value is zero or unknown. */
  zero: boolean;
}

/**
 * A link as its sending end (`out`) and its receiving end (`in`) observe it. `in` is `null` if that
 * end does not report it.
 */
interface Both {
  out: LinkView;
  in: LinkView | null;
}

/** A measure with its tooltip (`hint`) and the text of its value. */
type Measure = [name: string, unit: string, hint: string, of: (link: Both) => string];

/** Measures of a link that no other panel shows, in either direction. */
const MEASURES: readonly Measure[] = [
  ['sent', 'Mbit/s', 'Sent in the last second', ({ out }) => megabits(out.sentBps)],
  ['budget', 'Mbit/s', 'Share of the granted rate for media', ({ out }) => megabits(out.budgetBps)],
  ['one way', 'ms', 'One-way delay p50/p95/p99 of the last 10 s, by synchronized clocks', ({ out }) => delays(out.owdOut)],
  ['queue', 'kB', 'Media waiting to be sent', ({ out }) => kilobytes(out.queuedBytes)],
  ['in flight', 'kB', 'Sent and not reported yet', ({ out }) => kilobytes(out.inFlightBytes)],
  ['packet size', 'B', 'Largest datagram that the path is known to carry', ({ out }) => String(out.datagramBytes)],
];

/**
 * Measures of the direction to the vehicle. The panel of links shows them only for the direction
 * from it.
 */
const BACK: readonly Measure[] = [
  ['arriving', 'Mbit/s', 'Received by the other end in the last second', (link) => (link.in === null ? UNKNOWN : megabits(link.in.receivedBps))],
  ['granted', 'Mbit/s', 'Rate granted by rate control', ({ out }) => megabits(out.grantedBps)],
  ['lost', '%', 'Share lost in the last second', ({ out }) => percent(out.lossOut)],
];

/**
 * Returns a row per measure and a column per link of `sender`. `way` is `up` from the vehicle and
 * `down` to it. Counters of packets that are zero on all links are omitted.
 */
export function linkLines(sender: SnapshotView, receiver: SnapshotView | null, way: 'up' | 'down'): Line[] {
  const links = sender.links.map((out): Both => (
    { out, in: receiver?.links.find((link) => link.link === out.link) ?? null }));
  const measures = (way === 'up' ? MEASURES : [...MEASURES, ...BACK]).map(([name, unit, hint, of]): Line => (
    { name, unit, hint, cells: links.map(of), starts: false, zero: false }));
  const counts = (list: readonly Counter<LinkCount>[], end: 'out' | 'in'): Line[] => list.map(({ name, label, hint }) => (
    numbers(label, hint, links.map((link) => link[end]?.counts[name] ?? null))));
  const some = counts(PACKETS, 'out').filter((line) => !line.zero);
  return [
    ...measures, ...counts(SENT_DATAGRAMS, 'out'), ...counts(RECEIVED_DATAGRAMS, 'in'),
    ...some.map((line, index) => ({ ...line, starts: index === 0 })),
  ];
}

/**
 * A channel in one direction, as its sender and its receiver observe it; `null` if that end does
 * not report it.
 */
interface Flow {
  head: string;
  sender: ChannelView | null;
  receiver: ChannelView | null;
}

/** Returns a table with a column for each channel and direction that has carried units. */
export function unitTable(vehicle: SnapshotView | null, operator: SnapshotView | null): { heads: string[]; lines: Line[] } {
  const flows = [...flowsOf(vehicle, operator, 'to here'), ...flowsOf(operator, vehicle, 'to vehicle')];
  const lines = (list: readonly Counter<UnitCount>[], end: 'sender' | 'receiver'): Line[] => list
    .map(({ name, label, hint, always }) => (
      { always, line: numbers(label, hint, flows.map((flow) => flow[end]?.counts[name] ?? null)) }))
    .filter(({ always, line }) => always === true || !line.zero)
    .map(({ line }) => line);
  const received = lines(RECEIVED_UNITS, 'receiver');
  return {
    heads: flows.map(({ head }) => head),
    lines: [...lines(SENT_UNITS, 'sender'), ...received.map((line, index) => ({ ...line, starts: index === 0 }))],
  };
}

function flowsOf(from: SnapshotView | null, to: SnapshotView | null, way: string): Flow[] {
  const find = (end: SnapshotView | null, number: number): ChannelView | null => (
    end?.channels.find(({ channel }) => channel === number) ?? null);
  const numbers = new Set([...(from?.channels ?? []), ...(to?.channels ?? [])].map(({ channel }) => channel));
  return [...numbers].sort((one, other) => one - other).flatMap((number) => {
    const [sender, receiver] = [find(from, number), find(to, number)];
    const carried = (sender?.counts.offered ?? 0) + (receiver?.counts.delivered ?? 0);
    const name = sender?.name ?? receiver?.name ?? '';
    return carried === 0 ? [] : [{ head: `${name} ${way}`, sender, receiver }];
  });
}

/** The counters of both ends as tables. They are updated only while the card is open. */
export class Counts {
  readonly #card = byId<HTMLDetailsElement>('counts');
  readonly #age = byId('counts-age');
  readonly #up = new Grid('Vehicle to here', 'counts-up');
  readonly #down = new Grid('Here to vehicle', 'counts-down');
  readonly #units = new Grid('Units', 'counts-units');

  constructor() {
    byId('count-tables').append(this.#up.box, this.#down.box, this.#units.box);
  }

  /** `ageMs` is the age of the vehicle's snapshot; `null` if there is none. */
  show(vehicle: SnapshotView | null, operator: SnapshotView | null, ageMs: number | null): void {
    const old = ageMs !== null && ageMs > OLD_MS;
    setText(this.#age, ageText(ageMs));
    if (!this.#card.open) return;
    const heads = (end: SnapshotView | null): string[] => (end?.links ?? []).map(
      (link) => operator?.links.find((other) => other.link === link.link)?.name ?? link.name);
    this.#up.show(heads(vehicle), vehicle === null ? [] : linkLines(vehicle, operator, 'up'), old);
    this.#down.show(heads(operator), operator === null ? [] : linkLines(operator, vehicle, 'down'), false);
    const units = unitTable(vehicle, operator);
    this.#units.show(units.heads, units.lines, false);
  }
}

// Age above which the vehicle's counters are shown as old. Snapshots come twice a second; some may
// be lost.
const OLD_MS = 3_500;

/** A table that is rebuilt only when its columns or rows change. */
class Grid {
  readonly box: HTMLElement;
  readonly #caption: string;
  readonly #testId: string;
  #shape = '';
  #cells: HTMLElement[][] = [];
  #rows: HTMLElement[] = [];

  constructor(caption: string, testId: string) {
    this.#caption = caption;
    this.#testId = testId;
    this.box = make('div', { class: 'count-table', hidden: '' });
  }

  show(heads: string[], lines: Line[], old: boolean): void {
    this.box.hidden = heads.length === 0;
    const shape = JSON.stringify([heads, lines.map((line) => line.name)]);
    if (shape !== this.#shape) this.#build(heads, lines);
    this.#shape = shape;
    lines.forEach((line, row) => {
      setData(this.#rows[row]!, 'zero', String(line.zero));
      line.cells.forEach((text, column) => {
        const cell = this.#cells[row]![column]!;
        setText(cell, text);
        setData(cell, 'old', String(old));
      });
    });
  }

  #build(heads: string[], lines: Line[]): void {
    const head = make('tr', {}, make('td'), ...heads.map((name) => make('th', { scope: 'col' }, name)));
    this.#cells = lines.map((line) => line.cells.map(() => make('td')));
    this.#rows = lines.map((line, row) => make('tr', { 'data-starts': String(line.starts) },
      make('th', { scope: 'row', title: line.hint }, line.name, ...(line.unit === '' ? [] : [' ', make('i', {}, line.unit)])),
      ...this.#cells[row]!));
    this.box.replaceChildren(make('table', { 'data-testid': this.#testId },
      make('caption', {}, this.#caption), make('thead', {}, head), make('tbody', {}, ...this.#rows)));
  }
}

function numbers(name: string, hint: string, values: (number | null)[]): Line {
  const zero = values.every((value) => value === null || value === 0);
  return { name, unit: '', hint, cells: values.map((value) => (value === null ? UNKNOWN : count(value))), starts: false, zero };
}

function delays(spread: DelaysView | null): string {
  return spread === null ? UNKNOWN : [spread.p50, spread.p95, spread.p99].map((each) => each.toFixed(0)).join('/');
}

function ageText(ageMs: number | null): string {
  const what = 'by link and channel, in both directions';
  return ageMs !== null && ageMs > OLD_MS ? `the vehicle's counters are ${(ageMs / 1000).toFixed(0)} s old` : what;
}
