// Virtual gamepads, wheels and pedals, as Chromium shows them in `navigator.getGamepads`.

/**
 * Runs in the page before its own scripts: replaces `navigator.getGamepads`, and defines
 * `virtualPads`, which changes what it returns.
 */
function install() {
  const pads = [];
  Object.defineProperty(navigator, 'getGamepads', { configurable: true, value: () => pads.map(shown) });
  globalThis.virtualPads = {
    plug(index, id, mapping, axisCount, buttonCount, raw) {
      pads[index] = {
        id, index, mapping, connected: true, timestamp: performance.now(), live: false, known: new Set(),
        raw: raw ?? Array(axisCount).fill(0), buttons: Array.from({ length: buttonCount }, () => 0),
      };
      shown(pads[index]);
    },
    set(index, { axes = {}, buttons = {}, live }) {
      const pad = pads[index];
      Object.assign(pad.raw, axes);
      Object.assign(pad.buttons, buttons);
      pad.live = live ?? pad.live;
      pad.timestamp = performance.now();
      shown(pad);
    },
    unplug(index) {
      pads[index] = null;
    },
  };

  /**
   * Returns the visible state of a device, null for an unplugged one. An axis reads 0 until its raw
   * value has once been near 0.
   */
  function shown(pad) {
    if (pad == null) return null;
    pad.raw.forEach((value, axis) => { if (Math.abs(value) < 0.1) pad.known.add(axis); });
    return {
      id: pad.id, index: pad.index, mapping: pad.mapping, connected: true,
      timestamp: pad.live ? performance.now() : pad.timestamp,
      axes: pad.raw.map((value, axis) => (pad.known.has(axis) ? value : 0)),
      buttons: pad.buttons.map((value) => ({ value, pressed: value > 0.5, touched: value > 0 })),
    };
  }
}

/** The devices of one page; create it before the page is opened. */
export class VirtualPads {
  #page;

  static async on(page) {
    await page.addInitScript(install);
    return new VirtualPads(page);
  }

  constructor(page) {
    this.#page = page;
  }

  /** Connects a gamepad of the standard layout, with 4 axes and 17 buttons. */
  async plugPad(index) {
    await this.#plug(index, `Virtual Pad ${index} (STANDARD GAMEPAD Vendor: 0001 Product: 000${index})`, 'standard', 4, 17);
  }

  /**
   * Connects a wheel with three pedals and a hat, with the axis numbers of Linux; the pedals rest
   * at 1.
   */
  async plugWheel(index) {
    await this.#plug(index, 'Logitech G29 Driving Force Racing Wheel (Vendor: 046d Product: c24f)', '', 6, 25, [0, 1, 1, 1, 0, 0]);
  }

  /** Connects two unknown pedals, which rest at -1. */
  async plugPedals(index) {
    await this.#plug(index, 'Loadcell Pedals (Vendor: 0002 Product: 0003)', '', 2, 0, [-1, -1]);
  }

  async unplug(index) {
    await this.#page.evaluate((at) => globalThis.virtualPads.unplug(at), index);
  }

  /**
   * Sets raw values of axes and buttons by number. `live` means new timestamps all the time, even
   * without a change.
   */
  async set(index, values) {
    await this.#page.evaluate(([at, what]) => globalThis.virtualPads.set(at, what), [index, values]);
  }

  /** Sets an axis to each of these raw values in turn, 60 ms apart, so that the page sees each. */
  async sweep(index, axis, ...values) {
    for (const value of values) {
      await this.set(index, { axes: { [axis]: value } });
      await this.#page.waitForTimeout(60);
    }
  }

  /** Moves axis 0 of a standard pad fully to the right and back, which brings the pad into use. */
  async take(index) {
    await this.sweep(index, 0, 1, 0);
  }

  async #plug(...pad) {
    await this.#page.evaluate((given) => globalThis.virtualPads.plug(...given), pad);
    // The page records its rest position.
    await this.#page.waitForTimeout(100);
  }
}
