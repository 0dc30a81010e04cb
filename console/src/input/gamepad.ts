import type { Motion } from '../generated/kinds';
import { isTwisted } from '../twist';
import { Device, RELEASED } from './device';
import { type Numbering, isRadio, knownMapping, nameOf } from './known';
import { type Mapping, type PadState, PARTS, type Part, type Sticks, parseMapping, sticksOf, withSticks } from './mapping';
import { type Position, REST } from './ramp';

export interface PadEvents {
  emergencyStop(): void;
  toggleReverse(): void;
  /** Called when a device in use has disconnected. */
  gone(): void;
}

/** Combined position of the devices in use. */
export interface PadReading extends Position {
  /** True if a device in use controls the steering. */
  steers: boolean;
  /** True if a part of a device in use has moved since the last reading. */
  touched: boolean;
  /** True if the dead-man button of a device in use is held. */
  deadMan: boolean;
}

/** State of the machine and the keyboard that the reading depends on. */
export interface Surroundings {
  /** True if the guard accepts commands, so that the machine is not held. */
  driven: boolean;
  /** True if the machine is driven and not known to stand still. */
  moves: boolean;
  /** True if a driving key or touch control is held. */
  keysDrive: boolean;
  /** True if the machine drives at a held speed, whatever the devices report. */
  holdsSpeed: boolean;
}

/** A device in use that has sent no data for long. */
export interface Quiet {
  name: string;
  quietMs: number;
  /** Time without data after which it counts as frozen. */
  limitMs: number;
}

export type DeviceState = 'not known' | 'ready' | 'in use' | 'set aside' | 'frozen' | 'unsound';

/** One line of the list of devices. */
export interface DeviceView {
  index: number;
  name: string;
  state: DeviceState;
  /** Parts of the seat that it controls now. */
  parts: Part[];
  /**
   * Why its throttle is ignored: the brake was not pressed yet, or no device in use has a brake.
   * `null` if it is not ignored.
   */
  brakeNeed: 'press' | 'other device' | null;
  /** True if its turn and levers are ignored until all have been released once. */
  needsCentre: boolean;
  isRadio: boolean;
  isCalibrated: boolean;
  /** True once a person has evidently touched it. */
  wasTouched: boolean;
  axes: readonly number[];
  /** `null` if it has neither steering nor a lever. */
  deadZone: number | null;
  /** Sticks of a standard pad that drive a differential machine; `null` for any other device. */
  sticks: Sticks | null;
}

/**
 * Prefix of the storage keys; a device's id follows. A machine that a twist moves has its own
 * mappings, and uses that of a car if it has none.
 */
const STORES: Readonly<Record<Motion, string>> = {
  ackermann: 'tautline.device.', differential: 'tautline.differential-device.', omni: 'tautline.omni-device.',
};
/** Share of its travel by which a part must move between two readings to count as touched. */
const TOUCH = 0.02;
/**
 * Time without data after which a device that controls the brake counts as frozen while the machine
 * moves and the pedals are released: that brake may not work any more. See decision 75.
 */
export const RELEASED_QUIET_MAX_MS = 3_000;
/**
 * Time without data after which a device counts as frozen while a pedal is pressed, or if it does
 * not control the brake. A digital pad held at its limit sends no data.
 */
export const PRESSED_QUIET_MAX_MS = 12_000;
/** Time without data after which a device at rest yields to driving keys. */
const GIVES_WAY_MS = 1_000;

/** All gamepads, wheels and pedals. Those in use form one seat. */
export class Gamepads {
  #devices: Device[] = [];
  /** Device in use that controls each part. */
  readonly #givers = new Map<Part, Device>();
  /**
   * True if the throttle counts. Pedals may read as pressed until first moved, so the throttle must
   * be seen released, with a brake whose value is known.
   */
  #armed = false;
  /**
   * True if turn and levers count: they move a machine that a twist moves, so all must be seen
   * released. The steering of a car always counts.
   */
  #centred = false;
  #motion: Motion = 'ackermann';
  /**
   * The device in use that has been without data for longest, if for at least half of its limit.
   */
  #quiet: Quiet | null = null;
  #cameInUse = false;

  constructor(
    readonly events: PadEvents,
    readonly store: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>,
    readonly numbering: Numbering,
  ) {}

  /**
   * Returns the combined position of the devices in use, `null` if there is none. Call it once a
   * tick.
   */
  read(around: Surroundings, nowMs: number): PadReading | null {
    this.#cameInUse = false;
    this.#find(nowMs);
    for (const device of this.#devices) this.#listen(device, around.moves);
    if (around.keysDrive) this.#giveWay(nowMs);
    this.#judge(around, nowMs);
    const used = this.#used().filter(isHealthy);
    if (used.length === 0) {
      this.disarm();
      return null;
    }
    return {
      ...this.#levers(),
      throttle: this.#throttle(),
      brake: this.#of('brake').brake,
      steers: this.#healthy('steering') !== null,
      touched: used.some((device) => device.movedBy(TOUCH)),
      deadMan: used.some((device) => device.holds(device.mapping!.deadManButton)),
    };
  }

  /** True if the last reading brought a device into use: a person has taken it. */
  get cameInUse(): boolean {
    return this.#cameInUse;
  }

  /**
   * Ignores the throttle until it has been released once, and what moves a machine by a twist
   * until all of it has been.
   */
  disarm(): void {
    this.#armed = false;
    this.#centred = false;
  }

  /** Kind of the machine to drive. */
  get motion(): Motion {
    return this.#motion;
  }

  /** Another kind of machine has other mappings, so all devices go out of use. */
  set motion(motion: Motion) {
    if (motion === this.#motion) return;
    this.#motion = motion;
    for (const device of this.#devices) {
      device.mapping = this.#mappingFor(this.pad(device.index), device.id);
      this.#release(device);
    }
    this.disarm();
  }

  /**
   * Device in use that has been without data for at least half of its limit; `null` if there is
   * none.
   */
  get quiet(): Quiet | null {
    return this.#quiet;
  }

  /** Name of a frozen device in use; `null` if there is none. */
  get frozen(): string | null {
    return this.#nameWhere((device) => device.isFrozen);
  }

  /**
   * Name of a device in use that lacks numbers for an axis or button of its mapping; `null` if
   * there is none.
   */
  get unsound(): string | null {
    return this.#nameWhere((device) => !device.isSound);
  }

  /**
   * Takes every frozen or unsound device out of use until it is moved again: the operator drives by
   * other devices.
   */
  dropTroubled(): void {
    for (const device of this.#used()) if (!isHealthy(device)) this.#release(device);
  }

  views(): DeviceView[] {
    return this.#devices.map((device) => ({
      index: device.index,
      name: nameOf(device.id),
      state: this.#state(device),
      parts: this.#partsOf(device),
      brakeNeed: this.#brakeNeed(device),
      isRadio: isRadio(device.id),
      needsCentre: isTwisted(this.#motion) && !this.#centred && this.#partsOf(device).some((part) => (LEVERS as readonly Part[]).includes(part)),
      isCalibrated: this.#stored(device.id) !== null,
      wasTouched: device.wasTouched,
      axes: device.axes,
      deadZone: LEVERS.some((part) => device.parts.includes(part)) ? device.mapping!.deadZone : null,
      sticks: this.#sticks(device),
    }));
  }

  /** Connected pads that have sent data lately; one that is frozen is none. */
  live(nowMs: number): PadState[] {
    return connectedPads().filter((pad) => {
      const device = this.#device(pad.index);
      return device !== null && !device.isFrozen && device.silentMs(nowMs) < PRESSED_QUIET_MAX_MS;
    });
  }

  /** Returns the browser's state of a device; `null` if it is disconnected. */
  pad(index: number): PadState | null {
    return connectedPads().find((pad) => pad.index === index) ?? null;
  }

  mapping(index: number): Mapping | null {
    return this.#device(index)?.mapping ?? null;
  }

  /**
   * Lets the device control all parts that it has if `wanted`; otherwise sets it aside until a call
   * with `wanted`.
   */
  use(index: number, wanted: boolean): void {
    const device = this.#device(index);
    if (device === null) return;
    device.isAside = !wanted;
    if (!wanted) this.#release(device);
    else if (isHealthy(device)) this.#give(device, device.parts);
  }

  /**
   * Stores a mapping for all devices of this one's id; `null` deletes it, and the known mapping
   * applies again. Takes these devices out of use.
   */
  remember(index: number, mapping: Mapping | null): void {
    const id = this.#device(index)?.id;
    if (id === undefined) return;
    try {
      if (mapping === null) this.store.removeItem(STORES[this.#motion] + id);
      else this.store.setItem(STORES[this.#motion] + id, JSON.stringify(mapping));
    } catch {
      // Without storage the mapping lasts until the page is closed.
    }
    for (const device of this.#devices) {
      if (device.id !== id) continue;
      device.mapping = mapping ?? this.#mappingFor(this.pad(device.index), id);
      this.#release(device);
    }
    this.disarm();
  }

  /** Changes only the dead zone; the device stays in use. */
  setDeadZone(index: number, deadZone: number): void {
    const device = this.#device(index);
    if (device === null || device.mapping === null) return;
    const parts = this.#partsOf(device);
    this.remember(index, { ...device.mapping, deadZone });
    this.#give(device, parts);
  }

  /** Selects the sticks of a standard pad that drive a differential machine. */
  setSticks(index: number, sticks: Sticks): void {
    const device = this.#device(index);
    if (device === null || this.#sticks(device) === null) return;
    const parts = this.#partsOf(device);
    this.remember(index, withSticks(device.mapping!, sticks));
    this.#give(device, parts);
  }

  #find(nowMs: number): void {
    const pads = connectedPads();
    const remain = this.#devices.filter((device) => pads.some((pad) => pad.index === device.index && pad.id === device.id));
    const gone = this.#used().some((device) => !remain.includes(device));
    for (const device of this.#devices) if (!remain.includes(device)) this.#release(device);
    this.#devices = pads.map((pad) => {
      const device = remain.find(({ index }) => index === pad.index);
      if (device === undefined) return new Device(pad, this.#mappingFor(pad, pad.id), nowMs);
      device.observe(pad, nowMs);
      return device;
    });
    if (gone) {
      this.disarm();
      this.events.gone();
    }
  }

  /**
   * Handles a device's movements and buttons. It is brought into use once a person has moved it;
   * while the machine moves, it takes nothing from another device.
   */
  #listen(device: Device, moves: boolean): void {
    const { mapping } = device;
    if (mapping === null || device.isAside || !isHealthy(device)) return;
    if (this.#partsOf(device).length === 0 && device.isMoved) {
      this.#give(device, device.parts.filter((part) => this.#yields(part, device, moves)));
      if (this.#partsOf(device).length === 0) device.rest();
    }
    if (device.wentDown.includes(mapping.stopButton)) this.events.emergencyStop();
    if (device.wentDown.includes(mapping.reverseButton) && this.#partsOf(device).length > 0) this.events.toggleReverse();
  }

  /**
   * Returns whether device `to`, which was just moved, gets this part: if no healthy device
   * controls it, or, at standstill, if the device that controls it has all parts or if this part of
   * `to` was moved.
   */
  #yields(part: Part, to: Device, moves: boolean): boolean {
    const giver = this.#healthy(part);
    return giver === null || (!moves && (giver.isWhole || to.movedParts.includes(part)));
  }

  /** Takes devices that are at rest and without data out of use, because driving keys are down. */
  #giveWay(nowMs: number): void {
    for (const device of this.#used()) {
      if (device.isAtRest && !device.isFrozen && device.silentMs(nowMs) >= GIVES_WAY_MS) this.#release(device);
    }
  }

  /**
   * Marks devices in use that have been without data for too long as frozen, and finds for `quiet`
   * the one that has been without data longest.
   */
  #judge({ driven, moves, keysDrive, holdsSpeed }: Surroundings, nowMs: number): void {
    this.#quiet = null;
    // A car's steering drives nothing.
    const pressing = PARTS.filter((part) => part !== 'steering' || isTwisted(this.#motion));
    // A speed that is held is like a throttle that is held still.
    const pressed = holdsSpeed || pressing.some((part) => Math.abs(this.#of(part)[part]) >= RELEASED);
    for (const device of this.#devices) {
      const parts = this.#partsOf(device);
      // Somebody who drives by keys also brakes by keys.
      if (parts.length === 0 || !driven || keysDrive || (!moves && !pressed)) {
        device.excuse(nowMs);
        continue;
      }
      const coasts = parts.includes('brake') && !pressed;
      const limitMs = coasts ? RELEASED_QUIET_MAX_MS : PRESSED_QUIET_MAX_MS;
      const quietMs = device.quietMs(nowMs);
      if (quietMs >= limitMs && !device.isFrozen) {
        device.isFrozen = true;
        this.disarm();
      }
      if (quietMs >= limitMs / 2 && quietMs > (this.#quiet?.quietMs ?? 0)) this.#quiet = { name: nameOf(device.id), quietMs, limitMs };
    }
  }

  #throttle(): number {
    const { throttle } = this.#of('throttle');
    const pedal = this.#healthy('throttle')?.mapping?.throttle ?? null;
    if (pedal === null || !this.#hearsBrake()) this.#armed = false;
    else if (throttle < RELEASED && this.#healthy('throttle')!.hears(pedal)) this.#armed = true;
    return this.#armed ? throttle : 0;
  }

  /** Returns steering and levers; those that move a machine by a twist only once released. */
  #levers(): Pick<Position, (typeof LEVERS)[number]> {
    const [steering, speed, sideways] = LEVERS.map((part) => this.#of(part)[part]) as [number, number, number];
    if (!isTwisted(this.#motion)) return { steering, speed: 0, sideways: 0 };
    if ([steering, speed, sideways].every((lever) => Math.abs(lever) < RELEASED)) this.#centred = true;
    return this.#centred ? { steering, speed, sideways } : { steering: 0, speed: 0, sideways: 0 };
  }

  /** Returns whether a healthy device controls the brake and its raw value is known. */
  #hearsBrake(): boolean {
    const device = this.#healthy('brake');
    const pedal = device?.mapping?.brake ?? null;
    return pedal !== null && device!.hears(pedal);
  }

  #brakeNeed(device: Device): DeviceView['brakeNeed'] {
    if (this.#givers.get('throttle') !== device || this.#hearsBrake()) return null;
    return this.#givers.has('brake') ? 'press' : 'other device';
  }

  #give(device: Device, parts: readonly Part[]): void {
    for (const part of parts) {
      const before = this.#givers.get(part);
      if (before === device) continue;
      this.#givers.set(part, device);
      this.#cameInUse = true;
      this.#centred = false;
      if (part === 'throttle') this.#armed = false;
      if (before !== undefined && this.#partsOf(before).length === 0) before.rest();
    }
  }

  #release(device: Device): void {
    for (const part of this.#partsOf(device)) this.#givers.delete(part);
    device.rest();
  }

  #used(): Device[] {
    return [...new Set(this.#givers.values())];
  }

  #partsOf(device: Device): Part[] {
    return PARTS.filter((part) => this.#givers.get(part) === device);
  }

  #healthy(part: Part): Device | null {
    const device = this.#givers.get(part);
    return device !== undefined && isHealthy(device) ? device : null;
  }

  #of(part: Part): Position {
    return this.#healthy(part)?.position ?? REST;
  }

  #state(device: Device): DeviceState {
    if (device.mapping === null) return 'not known';
    if (device.isAside) return 'set aside';
    if (!device.isSound) return 'unsound';
    if (this.#partsOf(device).length === 0) return 'ready';
    return device.isFrozen ? 'frozen' : 'in use';
  }

  #nameWhere(holds: (device: Device) => boolean): string | null {
    const device = this.#used().find(holds);
    return device === undefined ? null : nameOf(device.id);
  }

  #device(index: number): Device | null {
    return this.#devices.find((device) => device.index === index) ?? null;
  }

  /** Returns which sticks of a standard pad drive a differential machine; `null` otherwise. */
  #sticks({ index, mapping }: Device): Sticks | null {
    const isStandard = this.#motion === 'differential' && this.pad(index)?.mapping === 'standard';
    return isStandard && mapping !== null ? sticksOf(mapping) : null;
  }

  /**
   * Returns the mapping of a device: that stored for this kind of machine, that stored for a car,
   * or the known one; `null` if there is none. A standard pad has better ones than a car's.
   */
  #mappingFor(pad: PadState | null, id: string): Mapping | null {
    const ofCar = pad?.mapping === 'standard' ? null : this.#stored(id, 'ackermann');
    const known = pad === null ? null : knownMapping(pad, this.numbering, this.#motion);
    return this.#stored(id) ?? ofCar ?? known;
  }

  #stored(id: string, motion: Motion = this.#motion): Mapping | null {
    try {
      return parseMapping(this.store.getItem(STORES[motion] + id) ?? '');
    } catch {
      return null;
    }
  }
}

/** Parts with two sides of a centre. */
const LEVERS = ['steering', 'speed', 'sideways'] as const satisfies readonly Part[];

function isHealthy(device: Device): boolean {
  return device.isSound && !device.isFrozen;
}

/** Returns the connected pads; none if the page has no permission. */
function connectedPads(): PadState[] {
  try {
    return Array.from(navigator.getGamepads()).filter((pad) => pad?.connected === true) as PadState[];
  } catch {
    return [];
  }
}
