import { type Mapping, type PadState, type Pedal, PARTS, type Part, apply, isSound } from './mapping';
import { type Position, REST } from './ramp';

/**
 * Share of its travel by which a wheel, stick or pedal must differ from its rest to count as moved.
 * Worn sticks drift by less.
 */
const MOVED = 0.1;
/** Position, 0 to 1, below which a pedal counts as released. */
export const RELEASED = 0.05;

/** One gamepad, wheel or set of pedals at an index of the browser's list. */
export class Device {
  readonly id: string;
  readonly index: number;
  /** Assignment of axes and buttons; `null` for an unknown device, which cannot drive. */
  #mapping: Mapping | null;
  #axes: number[] = [];
  #buttons: number[] = [];
  /** True for each axis that was ever other than 0. */
  #axisHeard: boolean[] = [];
  #timestamp = 0;
  /** Time of the last new data. */
  #heardAtMs: number;
  /** Time up to which missing data is excused. */
  #excusedAtMs: number;
  #position: Position = REST;
  #before: Position = REST;
  /** Position without a hand on the device; `null` before the first reading. */
  #restedAt: Position | null = null;
  #wentDown: number[] = [];
  #touched = false;
  /** True if the operator has set the device aside: moving it does not bring it into use. */
  isAside = false;
  /** True once it has sent no data for longer than its limit, until it sends new data. */
  isFrozen = false;

  constructor(pad: PadState, mapping: Mapping | null, nowMs: number) {
    this.id = pad.id;
    this.index = pad.index;
    this.#mapping = mapping;
    this.#heardAtMs = this.#excusedAtMs = nowMs;
    this.observe(pad, nowMs);
  }

  get mapping(): Mapping | null {
    return this.#mapping;
  }

  set mapping(mapping: Mapping | null) {
    this.#mapping = mapping;
    this.#position = this.#read();
    this.rest();
  }

  get axes(): readonly number[] {
    return this.#axes;
  }

  get position(): Position {
    return this.#position;
  }

  get parts(): Part[] {
    return PARTS.filter((part) => this.#mapping?.[part] != null);
  }

  get isSound(): boolean {
    return this.#mapping !== null && isSound(this.#mapping, this.#state());
  }

  /** Buttons that went down between the last two readings. */
  get wentDown(): readonly number[] {
    return this.#wentDown;
  }

  /** Handles the browser's state; call it once a tick. */
  observe(pad: PadState, nowMs: number): void {
    const axes = [...pad.axes];
    const buttons = pad.buttons.map(({ value, pressed }) => Math.max(value, pressed ? 1 : 0));
    const [axesBefore, buttonsBefore] = [this.#axes, this.#buttons];
    const changed = axes.some((value, axis) => value !== axesBefore[axis]) || buttons.some((value, button) => value !== buttonsBefore[button]);
    const stamped = stampsData(pad) && pad.timestamp !== this.#timestamp;
    this.#timestamp = pad.timestamp ?? 0;
    [this.#axes, this.#buttons] = [axes, buttons];
    axes.forEach((value, axis) => { this.#axisHeard[axis] ||= value !== 0; });
    this.#wentDown = buttons.flatMap((value, button) => (value > 0.5 && (buttonsBefore[button] ?? 1) <= 0.5 ? [button] : []));
    this.#touched ||= this.#wentDown.length > 0 || axes.some((value, axis) => Math.abs(value - (axesBefore[axis] ?? value)) > MOVED);
    if (changed || stamped) {
      this.#heardAtMs = nowMs;
      this.isFrozen = false;
    }
    this.#before = this.#position;
    this.#position = this.#read();
    if (this.#restedAt === null) this.rest();
  }

  /** Returns the time in ms since the last new data. */
  silentMs(nowMs: number): number {
    return nowMs - this.#heardAtMs;
  }

  /** Returns the time in ms for which data has been expected and none arrived. */
  quietMs(nowMs: number): number {
    return nowMs - Math.max(this.#heardAtMs, this.#excusedAtMs);
  }

  /** Excuses missing data up to now, because nothing depends on the device. */
  excuse(nowMs: number): void {
    this.#excusedAtMs = nowMs;
  }

  /** Takes the current position as the one without a hand on it. */
  rest(): void {
    this.#restedAt = this.#position;
    this.#before = this.#position;
  }

  /** True if a person has moved it from its rest, or pressed a button since the last reading. */
  get isMoved(): boolean {
    return this.#wentDown.length > 0 || isApart(this.#position, this.#restedAt ?? this.#position, MOVED);
  }

  /**
   * Parts that a person has moved from their rest. Throttle and brake count as moved together,
   * since feet use both, and so do speed and sideways motion, which may be one stick.
   */
  get movedParts(): Part[] {
    const rested = this.#restedAt ?? this.#position;
    const moved = GROUPS.filter((group) => group.some((part) => Math.abs(this.#position[part] - rested[part]) > MOVED)).flat();
    return this.parts.filter((part) => moved.includes(part));
  }

  /** True if it has all that a person needs to drive: steering, and both pedals or a lever. */
  get isWhole(): boolean {
    const { parts } = this;
    const drives = parts.includes('speed') || (parts.includes('throttle') && parts.includes('brake'));
    return parts.includes('steering') && drives;
  }

  /**
   * True once a person has evidently touched it: a button went down, or an axis moved far between
   * two readings. Also tracked for unknown devices.
   */
  get wasTouched(): boolean {
    return this.#touched;
  }

  /** Returns whether one of its parts has moved by more than `distance` since the last reading. */
  movedBy(distance: number): boolean {
    return isApart(this.#position, this.#before, distance);
  }

  holds(button: number): boolean {
    return (this.#buttons[button] ?? 0) > 0.5;
  }

  /** True if steering and levers are near their centre and both pedals are released. */
  get isAtRest(): boolean {
    const { throttle, brake, ...levers } = this.#position;
    return Object.values(levers).every((lever) => Math.abs(lever) < MOVED) && throttle < RELEASED && brake < RELEASED;
  }

  /**
   * Returns whether a pedal's raw value is known.
   *
   * Chromium shows an axis as exactly 0 until it has once been near 0. For a pedal that rests at 1,
   * that is half its travel.
   */
  hears(pedal: Pedal): boolean {
    return pedal.kind === 'button' || pedal.released === 0 || this.#axisHeard[pedal.axis] === true;
  }

  #state(): Pick<PadState, 'axes' | 'buttons'> {
    return { axes: this.#axes, buttons: this.#buttons.map((value) => ({ value, pressed: value > 0.5 })) };
  }

  #read(): Position {
    if (this.#mapping === null || !isSound(this.#mapping, this.#state())) return REST;
    const { throttle, brake } = this.#mapping;
    const read = apply(this.#mapping, this.#state());
    return {
      ...read,
      throttle: throttle !== null && this.hears(throttle) ? read.throttle : 0,
      brake: brake !== null && this.hears(brake) ? read.brake : 0,
    };
  }
}

/**
 * Returns whether a new timestamp of this device means new data. Chromium stamps XInput pads at
 * each poll, even without an answer.
 */
function stampsData({ id, timestamp }: PadState): boolean {
  return timestamp !== undefined && timestamp !== 0 && !/xinput/i.test(id);
}

/** Returns whether a part of the two positions differs by more than `distance`. */
function isApart(one: Position, other: Position, distance: number): boolean {
  return PARTS.some((part) => Math.abs(one[part] - other[part]) > distance);
}

/** Parts that one hand or foot moves. */
const GROUPS: readonly (readonly Part[])[] = [['steering'], ['throttle', 'brake'], ['speed', 'sideways']];
