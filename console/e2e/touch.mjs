// Fingers on a touch screen, by Chromium's own touch events.

/** The fingers on one page, which needs a context with `hasTouch`. */
export class Fingers {
  #session;
  #points = new Map();

  static async on(page) {
    return new Fingers(await page.context().newCDPSession(page));
  }

  constructor(session) {
    this.#session = session;
  }

  /** Puts a finger with this number on a place of the window in CSS pixels. */
  async down(id, x, y) {
    this.#points.set(id, { id, x, y });
    await this.#send('touchStart');
  }

  /** Moves a finger by this distance, x to the right and y upwards. */
  async move(id, x, y) {
    const point = this.#points.get(id);
    this.#points.set(id, { id, x: point.x + x, y: point.y - y });
    await this.#send('touchMove');
  }

  /** Lifts a finger. Chromium lifts the points of this message, and leaves the others. */
  async up(id) {
    const lifted = this.#points.get(id);
    this.#points.delete(id);
    await this.#send('touchEnd', [lifted]);
  }

  /** Lifts all fingers. */
  async release() {
    for (const id of [...this.#points.keys()]) await this.up(id);
  }

  /** Takes all touches away, as a system dialog does. */
  async cancel() {
    this.#points.clear();
    await this.#send('touchCancel', []);
  }

  async #send(type, touchPoints = [...this.#points.values()]) {
    await this.#session.send('Input.dispatchTouchEvent', { type, touchPoints });
  }
}

/** Returns the middle of an element in CSS pixels of the window. */
export async function middleOf(page, selector) {
  const { x, y, width, height } = await page.locator(selector).boundingBox();
  return [x + width / 2, y + height / 2];
}
