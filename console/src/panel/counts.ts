import { End } from '../message/end';
import { UnitClass } from '../message/unit-class';
import type { DelaysView, LinkSurveyView, LinkView, PacketFate, SurveyView, UnitFate } from '../report';
import { byId, make, setData, setText } from './element';
import { UNKNOWN, count, megabits, ms, percent } from './format';

/** One line of a table: a cell a column. */
export interface Line {
  name: string;
  unit: string;
  hint: string;
  cells: string[];
  /** Whether a rule goes before it. */
  starts: boolean;
  zero: boolean;
}

interface Both {
  out: LinkSurveyView;
  /** The same link as the receiving end counts it; null: not told. */
  in: LinkSurveyView | null;
}

type Measure = [name: string, unit: string, hint: string, of: (link: Both) => string];

const RATES: readonly Measure[] = [
  ['sent', 'Mbit/s', 'What the sending end sent lately', ({ out }) => megabits(out.sentBps)],
  ['arriving', 'Mbit/s', 'What arrives at the receiving end', (link) => (link.in === null ? UNKNOWN : megabits(link.in.incomingBps))],
  ['granted', 'Mbit/s', 'What rate control grants', ({ out }) => megabits(out.grantedBps)],
  ['budget', 'Mbit/s', 'What the video counts on', ({ out }) => megabits(out.budgetBps)],
  ['one way', 'ms', 'p50/p95/p99 of the last 10 s, by the comparison of the clocks', ({ out }) => delays(out.owdOut)],
  ['lost', '%', 'Share lost of the last second', ({ out }) => percent(out.lossOut)],
  ['queue', 'kB', 'Media that waits to be sent', ({ out }) => kilobytes(out.queuedBytes)],
  ['in flight', 'kB', 'Sent, and nothing known of it yet', ({ out }) => kilobytes(out.inFlightBytes)],
  ['packet size', 'B', 'Largest datagram sent, as far as the path is known to carry', ({ out }) => String(out.datagramBytes)],
  ['datagrams', '', 'Sent since the session began', ({ out }) => count(out.datagramsSent)],
  ['received', '', 'Datagrams that came, each once', (link) => (link.in === null ? UNKNOWN : count(link.in.datagramsReceived))],
];

const PACKETS: readonly [PacketFate, name: string, hint: string][] = [
  ['given', 'packets given', 'Media packets that the link was given'],
  ['again', 'repairing', 'Of these, in another link\'s place, or fresh for a unit that lacked some'],
  ['dropped', 'dropped', 'Their deadline passed here'],
  ['withdrawn', 'withdrawn', 'Taken off the link when it might carry no more'],
  ['sent', 'sent', 'Media packets that left'],
  ['inTime', 'in time', 'Arrived by their deadline'],
  ['late', 'late', 'Arrived after it'],
  ['lost', 'lost', 'Lost, as far as reports tell'],
];

const SENDERS: readonly [UnitFate, name: string, hint: string][] = [
  ['offered', 'offered', 'Handed over for sending'],
  ['accepted', 'accepted', 'Accepted for sending'],
  ['refusedNoLink', 'refused: no link', 'No session, or no link up'],
  ['refusedInvalid', 'refused: invalid', 'Too large, or without a sensible deadline'],
  ['refusedCongested', 'refused: congested', 'Queues full, or no link in time'],
];

const RECEIVERS: readonly [UnitFate, name: string, hint: string][] = [
  ['delivered', 'complete', 'Whole, in time, delivered'],
  ['repaired', 'repaired', 'Of these, units that needed a repair packet'],
  ['late', 'late', 'The first packet came after the deadline'],
  ['missing', 'lost: missing', 'Nothing came'],
  ['incomplete', 'lost: incomplete', 'Too few packets at the deadline'],
  ['evicted', 'lost: evicted', 'Given up to bound memory, or for a new session'],
  ['malformed', 'lost: malformed', 'Packets that make no unit'],
  ['superseded', 'superseded', 'Overtaken by a newer one'],
];
// These are news even as zeros.
const ALWAYS: ReadonlySet<UnitFate> = new Set(['offered', 'accepted', 'delivered', 'late']);

/** A line a measure, a column a link of `sender`; of packets only what has happened to any. */
export function linkLines(sender: SurveyView, receiver: SurveyView | null): Line[] {
  const links = sender.links.map((out): Both => (
    { out, in: receiver?.links.find((link) => link.link === out.link) ?? null }));
  const rates = RATES.map(([name, unit, hint, of]): Line => (
    { name, unit, hint, cells: links.map(of), starts: false, zero: false }));
  const packets = PACKETS.map(([fate, name, hint]) => numbers(name, hint, links.map(({ out }) => out.packets[fate])));
  const some = packets.filter((line) => !line.zero);
  return [...rates, ...some.map((line, index) => ({ ...line, starts: index === 0 }))];
}

/** A line a fate; the columns are video and telemetry to here, and commands to the vehicle. */
export function unitLines(vehicle: SurveyView | null, operator: SurveyView | null): Line[] {
  const columns = [
    { sender: unitsOf(vehicle, UnitClass.Media), receiver: unitsOf(operator, UnitClass.Media) },
    { sender: unitsOf(vehicle, UnitClass.Control), receiver: unitsOf(operator, UnitClass.Control) },
    { sender: unitsOf(operator, UnitClass.Control), receiver: unitsOf(vehicle, UnitClass.Control) },
  ];
  const lines = (fates: typeof SENDERS, end: 'sender' | 'receiver'): Line[] => fates
    .map(([fate, name, hint]) => ({ fate, line: numbers(name, hint, columns.map((column) => column[end]?.[fate] ?? null)) }))
    .filter(({ fate, line }) => ALWAYS.has(fate) || !line.zero)
    .map(({ line }) => line);
  const received = lines(RECEIVERS, 'receiver');
  return [...lines(SENDERS, 'sender'), ...received.map((line, index) => ({ ...line, starts: index === 0 }))];
}

/** What both ends count, as tables; closed, it costs nothing. */
export class Counts {
  readonly #card = byId<HTMLDetailsElement>('counts');
  readonly #age = byId('counts-age');
  readonly #up = new Grid('Vehicle to here', 'counts-up');
  readonly #down = new Grid('Here to vehicle', 'counts-down');
  readonly #units = new Grid('Units', 'counts-units');
  #vehicle: { survey: SurveyView; atMs: number } | null = null;
  #operator: SurveyView | null = null;

  constructor() {
    byId('count-tables').append(this.#up.box, this.#down.box, this.#units.box);
  }

  observe(survey: SurveyView, nowMs: number): void {
    if (survey.end === End.Vehicle) this.#vehicle = { survey, atMs: nowMs };
    else this.#operator = survey;
  }

  /** `links` have the names. */
  show(links: LinkView[], nowMs: number): void {
    const old = this.#vehicle !== null && nowMs - this.#vehicle.atMs > OLD_MS;
    setText(this.#age, ageText(this.#vehicle === null ? null : nowMs - this.#vehicle.atMs));
    if (!this.#card.open) return;
    const vehicle = this.#vehicle?.survey ?? null;
    const heads = (survey: SurveyView | null): string[] => (survey?.links ?? []).map(
      (link) => links.find((other) => other.link === link.link)?.name ?? String(link.link));
    this.#up.show(heads(vehicle), vehicle === null ? [] : linkLines(vehicle, this.#operator), old);
    this.#down.show(heads(this.#operator), this.#operator === null ? [] : linkLines(this.#operator, vehicle), false);
    this.#units.show(UNIT_HEADS, unitLines(vehicle, this.#operator), false);
  }
}

// An operator sends no media.
const UNIT_HEADS = ['video', 'telemetry', 'commands'];
// Told once a second; two may be lost.
const OLD_MS = 3_500;

/** A table that is built anew only when its heads or lines change. */
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

function unitsOf(survey: SurveyView | null, unitClass: UnitClass): Record<UnitFate, number> | null {
  return survey?.classes.find((each) => each.class === unitClass)?.units ?? null;
}

function delays(spread: DelaysView | null): string {
  return spread === null ? UNKNOWN : [spread.p50, spread.p95, spread.p99].map((each) => each.toFixed(0)).join('/');
}

function kilobytes(bytes: number): string {
  return ms(bytes / 1000);
}

function ageText(ageMs: number | null): string {
  if (ageMs === null) return 'by link and class, both ways';
  return ageMs > OLD_MS ? `the vehicle's are ${(ageMs / 1000).toFixed(0)} s old` : 'by link and class, both ways';
}
