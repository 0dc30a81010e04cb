import { type Mapping, type PadState, type Pedal, PARTS, type Part, apply, isSound } from './mapping';
import { type Position, REST } from './ramp';

/** How far a wheel or pedal moves, of 1, before a person is taken to have moved it: worn sticks wander by less. */
const MOVED = 0.1;
/** A pedal counts as released below this. */
export const RELEASED = 0.05;

/** One pad, wheel or set of pedals, as read from its place in the browser's list. */
export class Device {
  readonly id: string;
  readonly index: number;
  /** Null: nothing is known of it, so that it drives nothing. */
  #mapping: Mapping | null;
  #axes: number[] = [];
  #buttons: number[] = [];
  #axisHeard: boolean[] = [];
  #timestamp = 0;
  #heardAtMs: number;
  #excusedAtMs: number;
  #position: Position = REST;
  #before: Position = REST;
  #restedAt: Position | null = null;
  #wentDown: number[] = [];
  #touched = false;
  /** The person does not want it. */
  isAside = false;
  /** Nothing was heard from it for longer than its limit; only a sign of life ends that. */
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

  /** Buttons that went down since the last look. */
  get wentDown(): readonly number[] {
    return this.#wentDown;
  }

  /** Takes what the browser shows; once a tick. */
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

  /** Time without a sign of life, ms. */
  silentMs(nowMs: number): number {
    return nowMs - this.#heardAtMs;
  }

  /** Time for which a sign of life was due and none came, ms. */
  quietMs(nowMs: number): number {
    return nowMs - Math.max(this.#heardAtMs, this.#excusedAtMs);
  }

  /** No sign of life is due up to now: nothing depends on the device. */
  excuse(nowMs: number): void {
    this.#excusedAtMs = nowMs;
  }

  /** Takes the present position for the one in which nobody touches it. */
  rest(): void {
    this.#restedAt = this.#position;
    this.#before = this.#position;
  }

  /** Returns whether a person has moved it from where it rested, or pressed a button. */
  get isMoved(): boolean {
    return this.#wentDown.length > 0 || isApart(this.#position, this.#restedAt ?? this.#position, MOVED);
  }

  /** Parts that a person has moved from where they rested; throttle and brake move together, as feet do. */
  get movedParts(): Part[] {
    const { steering, throttle, brake } = this.#position;
    const rested = this.#restedAt ?? this.#position;
    const turned = Math.abs(steering - rested.steering) > MOVED;
    const pressed = Math.abs(throttle - rested.throttle) > MOVED || Math.abs(brake - rested.brake) > MOVED;
    return this.parts.filter((part) => (part === 'steering' ? turned : pressed));
  }

  /** It has a wheel and both pedals: a seat by itself. */
  get isWhole(): boolean {
    return this.parts.length === PARTS.length;
  }

  /** Somebody has evidently had a hand on it, whether anything is known of it or not. */
  get wasTouched(): boolean {
    return this.#touched;
  }

  /** Returns whether it has moved by more than this since the last look. */
  movedBy(distance: number): boolean {
    return isApart(this.#position, this.#before, distance);
  }

  holds(button: number): boolean {
    return (this.#buttons[button] ?? 0) > 0.5;
  }

  /** Returns whether wheel and pedals are where they are without a hand or foot. */
  get isAtRest(): boolean {
    const { steering, throttle, brake } = this.#position;
    return Math.abs(steering) < MOVED && throttle < RELEASED && brake < RELEASED;
  }

  /**
   * Returns whether a pedal's raw value is known.
   *
   * Chromium shows an axis as exactly 0 until it has once been near 0, to a pedal that rests at 1 half its travel.
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
      steering: read.steering,
      throttle: throttle !== null && this.hears(throttle) ? read.throttle : 0,
      brake: brake !== null && this.hears(brake) ? read.brake : 0,
    };
  }
}

/** Chromium stamps pads of XInput when it asks for them, whether the device has answered or not. */
function stampsData({ id, timestamp }: PadState): boolean {
  return timestamp !== undefined && timestamp !== 0 && !/xinput/i.test(id);
}

function isApart(one: Position, other: Position, distance: number): boolean {
  return Math.abs(one.steering - other.steering) > distance || Math.abs(one.throttle - other.throttle) > distance
    || Math.abs(one.brake - other.brake) > distance;
}
