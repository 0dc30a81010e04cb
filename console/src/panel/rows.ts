import { make, setData, setText } from './element';

/** Named rows of text under a heading. Each row is created once and then updated. */
export class Rows {
  readonly #values = new Map<string, { row: HTMLElement; value: HTMLElement }>();
  readonly box: HTMLElement;

  constructor(parent: HTMLElement, heading: string) {
    this.box = make('section', { 'aria-label': heading }, make('h3', {}, heading));
    parent.append(this.box);
  }

  /**
   * Sets the text of the row with this `testId`. The first call adds the row; `name` and `kind`
   * count only then.
   */
  set(name: string, value: string, testId: string, kind = ''): void {
    let entry = this.#values.get(testId);
    if (entry === undefined) {
      const text = make('b', { id: testId, 'data-testid': testId });
      entry = { row: make('div', { 'data-kind': kind }, make('span', {}, name), text), value: text };
      this.#values.set(testId, entry);
      this.box.append(entry.row);
    }
    setData(entry.row, 'zero', String(value === '0'));
    setText(entry.value, value);
  }
}
