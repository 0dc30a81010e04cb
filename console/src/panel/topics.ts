import type { TopicView } from '../report';
import { byId, make, setText } from './element';
import { UNKNOWN, count } from './format';

/**
 * Describes a topic and its newest unit. `sinceMs` is the time since the vehicle's report; `null`
 * if the report is not live.
 */
export function topicWords({ encoding, schema, newest }: TopicView, sinceMs: number | null): string {
  const kind = [encoding || 'encoding not declared', schema].filter((word) => word !== '').join(' ');
  if (sinceMs === null) return `${kind}, ${UNKNOWN}`;
  if (newest === null) return `${kind}, no unit yet`;
  return `${kind}, ${count(newest.bytes)} B, ${((newest.ageMs + sinceMs) / 1000).toFixed(1)} s old`;
}

/** Topics of other programs, each with its newest unit. */
export class Topics {
  readonly #card = byId<HTMLDetailsElement>('topics');
  readonly #box = byId('topic-rows');
  #rows: Row[] = [];
  #shape = '';

  show(topics: TopicView[], sinceMs: number | null): void {
    this.#card.hidden = topics.length === 0;
    const shape = JSON.stringify(topics.map(({ channel, topic }) => [channel, topic]));
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#rows = topics.map((topic) => new Row(topic));
      this.#box.replaceChildren(...this.#rows.map(({ element }) => element));
    }
    if (this.#card.open) this.#rows.forEach((row, index) => row.show(topics[index]!, sinceMs));
  }
}

class Row {
  readonly #words = make('b');
  readonly #text = make('pre');
  readonly element: HTMLElement;

  constructor({ channel, topic }: TopicView) {
    const name = make('span', { title: `channel ${channel} under Counters` }, topic);
    this.element = make('section', { 'data-testid': `topic-${channel}` }, make('div', {}, name, this.#words), this.#text);
  }

  show(topic: TopicView, sinceMs: number | null): void {
    setText(this.#words, topicWords(topic, sinceMs));
    const text = sinceMs === null ? null : topic.newest?.text ?? null;
    this.#text.hidden = text === null;
    setText(this.#text, text ?? '');
  }
}
