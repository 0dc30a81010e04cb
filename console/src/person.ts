import { Acts, type ActsView, type Deed } from './acts';
import { type DeclaredInputs, DeclaredSeat } from './input/declared-seat';
import { Bindings } from './input/bindings';
import { DeclaredLevers } from './input/declared-levers';
import { Gamepads, type PadReading, type Quiet } from './input/gamepad';
import { Keyboard, type Press } from './input/keyboard';
import { type Numbering } from './input/known';
import { type Absence, type DeadMan, DeadManInput, Presence } from './input/presence';
import { type Position } from './input/ramp';
import { STANDSTILL_MPS, Seat } from './input/seat';
import { SpeedSetting } from './input/set-point';
import type { Touch } from './input/touch';
import { opposes } from './input/twist-seat';
import type { Motion } from './generated/kinds';
import type { GuardView } from './guard';
import type { Description } from './declared';
import type { TelemetryView } from './report';
import { type Bounds, type Twist, isTwisted, stands } from './twist';
import type { Demand } from './wire';

export interface PersonEvents {
  /** Sends a command before the next tick. */
  urgent(): void;
  /**
   * Reports that an emergency stop was requested; the page soon shows whether it is unacknowledged.
   */
  stopAsked(): void;
  help(): void;
}

/** Motion that the machine reports; a value is `null` if it is unknown. */
export type Moved = { [Part in keyof Twist]: number | null };

const MOTION_UNKNOWN: Moved = { forward: null, sideways: null, yawRate: null };
/** Limits while none are known: nothing may move. */
const NO_BOUNDS: Bounds = { forward: 0, back: 0, sideways: 0, yawRate: 0 };

/** Actions of the steering check. */
export type SteeringDeed = Extract<Deed['kind'], `${string}steering${string}`>;

/**
 * The operator at this page: devices, presence and actions, combined into one command at each tick.
 */
export class Person {
  readonly seat = new Seat();
  readonly presence = new Presence();
  readonly deadMan: DeadManInput;
  readonly pads: Gamepads;
  readonly speed: SpeedSetting;
  /** Declared axes and actions. */
  readonly declared = new DeclaredSeat();
  readonly bindings: Bindings;
  readonly #levers: DeclaredLevers;
  #description: Description | null = null;
  /** Touch controls; `null` until the page has them. */
  touch: Touch | null = null;
  readonly #keyboard: Keyboard;
  readonly #acts: Acts;
  #guard: GuardView | null = null;
  #held: DeadMan = 'absent';
  #moved: Moved = MOTION_UNKNOWN;
  /** Kind of the machine, as its guard last reported; that of a car before. */
  #motion: Motion = 'ackermann';
  /** True while another console drives and has agreed that this one takes over. */
  succeeds = false;
  /**
   * False while no vehicle is picked, or this page only watches. Then nothing is requested from a
   * vehicle.
   */
  mayAct = true;

  /**
   * `console` identifies this page; `random`, in [0, 1), selects its first stop number; `numbering`
   * is how this browser numbers gamepad axes.
   */
  constructor(readonly console: bigint, random: number, storage: Storage, numbering: Numbering, readonly events: PersonEvents) {
    this.#acts = new Acts(console, random);
    this.deadMan = new DeadManInput(storage);
    this.speed = new SpeedSetting(storage);
    this.bindings = new Bindings(storage);
    this.#levers = new DeclaredLevers(this.bindings);
    this.pads = new Gamepads({
      emergencyStop: () => this.stop(performance.now()),
      toggleReverse: () => this.press('reverse'),
      gone: () => this.leave('pad gone'), // Called while a command is being built.
    }, storage, numbering);
    this.#keyboard = new Keyboard(window, {
      press: (press) => this.press(press),
      touched: () => this.takeUp(),
      free: (code) => this.#assigned(code),
      braked: () => {
        this.seat.zeroSpeed();
        this.pads.disarm();
      },
      metaKey: () => {
        this.leave('meta key');
        this.events.urgent();
      },
    });
  }

  /** Returns the state that the page shows. */
  view(nowMs: number): ActsView & { stopAsked: boolean; deadMan: DeadMan; padQuiet: Quiet | null; padTroubled: string | null } {
    const padTroubled = this.pads.frozen ?? this.pads.unsound;
    return {
      ...this.#acts.view(nowMs), stopAsked: this.seat.emergencyStopped, deadMan: this.#held, padQuiet: this.pads.quiet, padTroubled,
    };
  }

  press(press: Press): void {
    if (!this.mayAct && press !== 'help') return;
    const nowMs = performance.now();
    switch (press) {
      case 'emergency-stop':
        this.stop(nowMs);
        return;
      case 'arm':
        if (this.succeeds) this.#begin({ kind: 'take over' }, nowMs);
        else this.#begin({ kind: 'arm' }, nowMs);
        return;
      case 'reset':
        if (this.#guard?.latched === true) this.#begin({ kind: 'reset', stop: this.#guard.stop }, nowMs);
        return;
      case 'park':
        this.#begin({ kind: 'park' }, nowMs);
        return;
      case 'reverse':
        this.seat.toggleReverse(this.#moved.forward);
        return;
      case 'help':
        this.events.help();
        return;
    }
  }

  /** Requests that the armed machine turns its wheels, or reports what was seen of that. */
  steering(deed: SteeringDeed): void {
    if (this.mayAct) this.#begin({ kind: deed }, performance.now());
  }

  stop(nowMs: number): void {
    if (!this.mayAct) return;
    this.seat.stop();
    this.#acts.stop(nowMs);
    this.#releaseDeclared();
    this.events.urgent();
    this.events.stopAsked();
  }

  /**
   * Handles a driving key or a click on this page: the operator is present. Frozen or unsound
   * devices are taken out of use.
   */
  takeUp(): void {
    this.pads.dropTroubled();
    this.presence.takeUp();
  }

  /** Declaration of the machine; `null` if nothing is known. */
  get description(): Description | null {
    return this.#description;
  }

  /** Takes what the machine declares; `null` if nothing is known. */
  describe(description: Description | null): void {
    if (description?.revision === this.#description?.revision) return;
    this.#description = description;
    this.declared.describe(description);
    this.#levers.release();
  }

  /** Asks the machine for a declared action: switches it, or requests it. */
  ask(index: number): void {
    if (!this.mayAct) return;
    if (this.#description?.actions[index]?.form === 'request') this.#begin({ kind: 'request', action: index }, performance.now());
    else this.declared.toggle(index);
  }

  /** Kind of the machine to drive. */
  get motion(): Motion {
    return this.#motion;
  }

  /**
   * Begins an absence: keys and touch controls that are held, pedals and the pending action no
   * longer count, and no speed is held.
   */
  leave(absence: Absence): void {
    this.#keyboard.releaseAll();
    this.touch?.releaseAll();
    this.seat.zeroSpeed();
    this.#releaseDeclared();
    this.pads.disarm();
    this.#acts.withdraw();
    this.presence.set(absence, true);
  }

  /**
   * Drops all requests and what is known of the vehicle, because it was released. An emergency stop
   * that is not yet acknowledged is dropped too.
   */
  forget(): void {
    this.#guard = null;
    this.describe(null);
    this.#acts.forget();
    this.seat.zeroSpeed();
    this.seat.resume();
  }

  /**
   * Handles the vehicle's telemetry; `atMs` is a time of `performance.now`. While the guard is
   * silent, nothing is acknowledged.
   */
  observe({ guard }: Pick<TelemetryView, 'guard'>, atMs: number): void {
    this.#guard = guard;
    if (guard === null) return;
    this.#motion = this.#keyboard.motion = this.pads.motion = guard.motion;
    this.#acts.observe(guard, atMs);
    if (guard.blockers.includes('dead man')) this.deadMan.require();
    // Once acknowledged, the guard keeps the stop, whatever this page does.
    if (this.#acts.emergencyStop === null) this.seat.resume();
  }

  /**
   * Returns the command of a tick, `seconds` after the last one. `moved` is the machine's motion as
   * reported, `null` if telemetry is not live. While `calibrating`, no device drives.
   */
  command(moved: Moved | null, calibrating: boolean, seconds: number): Demand {
    const nowMs = performance.now();
    this.#moved = moved ?? MOTION_UNKNOWN;
    const pad = this.#readPads(nowMs);
    const touched = this.touch?.isHeld === true;
    this.#watchPads();
    this.#hold('calibrating', calibrating);
    this.#held = this.deadMan.read(this.#keyboard.deadMan || pad?.deadMan === true || touched);
    this.presence.set('dead-man released', this.#held === 'released');
    const { worst } = this.presence;
    if (worst !== null) {
      this.seat.letGo(worst);
      this.#releaseDeclared();
    }
    else if (this.seat.released !== 'none') this.seat.takeUp();
    // Read the keys and touch controls again: a new absence releases all of them.
    const devices = {
      keys: this.#keyboard.keys(), pad: calibrating ? null : pad, touch: this.#touchPosition(),
      speedMps: this.#moved.forward,
      motion: this.#motion, bounds: this.#guard?.bounds ?? NO_BOUNDS, speedMode: this.speed.mode,
      driven: moved !== null && this.drives,
    };
    return {
      ...this.seat.command(devices, seconds),
      ...this.#declaredControls(devices.driven, calibrating, seconds, nowMs),
      act: this.#acts.act(nowMs),
      emergencyStopNumber: this.#acts.emergencyStop ?? 0,
      deadMan: this.#held,
      absences: this.presence.bits,
    };
  }

  #declaredControls(driven: boolean, calibrating: boolean, seconds: number, nowMs: number): Pick<Demand, 'axes' | 'actions'> {
    const isPresent = this.mayAct && this.presence.worst === null && !this.seat.emergencyStopped;
    let inputs: DeclaredInputs = { levers: [], held: new Set(), measured: this.#guard?.axes ?? [], driven: driven && isPresent };
    if (!inputs.driven) this.#levers.releaseAxes();
    if (this.#description !== null && isPresent) {
      const read = this.#levers.read(this.#description, (code) => this.#keyboard.isDown(code), calibrating ? [] : this.pads.live(nowMs));
      for (const index of read.pressed) this.ask(index);
      inputs = { ...inputs, levers: read.axes, held: read.held };
    }
    return this.declared.next(inputs, seconds);
  }

  #releaseDeclared(): void {
    this.declared.release();
    this.#levers.release();
  }

  /** Handles a key that may be assigned. Returns whether it is. */
  #assigned(code: string): boolean {
    const description = this.#description;
    if (description === null) return false;
    const { axes, actions } = description;
    const moves = this.bindings.slotsOf(code, axes.flatMap(({ name }) => [`more ${name}`, `less ${name}`] as const)).length > 0;
    const asked = actions.flatMap(({ name }, index) => (this.bindings.slotsOf(code, [`action ${name}`]).length > 0 ? [index] : []));
    for (const index of asked) this.ask(index);
    return moves || asked.length > 0;
  }

  /**
   * Reads the devices. A key that brakes, or that contradicts a device of a machine that a twist
   * moves, disarms throttle and levers until they were released.
   */
  #readPads(nowMs: number): PadReading | null {
    const keys = this.#keyboard.keys();
    const driven = this.#guard !== null && this.#guard.mode !== 'held';
    const isBrake = keys.hardBrake || (keys.back && !isTwisted(this.#motion));
    // The throttle of a pad that is held or frozen while a brake key is down must not return with
    // its release.
    if (isBrake) this.pads.disarm();
    const keysDrive = Object.values(keys).includes(true) || this.touch?.isHeld === true;
    const pad = this.pads.read({ driven, moves: driven && this.#moves(), keysDrive, holdsSpeed: this.seat.setPointMps !== 0 }, nowMs);
    if (pad !== null && isTwisted(this.#motion) && opposes(keys, pad)) this.pads.disarm();
    return pad;
  }

  /** Returns whether the machine is not known to stand. */
  #moves(): boolean {
    const { forward, sideways, yawRate } = this.#moved;
    if (!isTwisted(this.#motion)) return forward === null || Math.abs(forward) > STANDSTILL_MPS;
    if (forward === null || yawRate === null || (sideways === null && this.#motion === 'omni')) return true;
    return !stands({ forward, sideways: sideways ?? 0, yawRate });
  }

  /** True while the guard lets this console drive. */
  get drives(): boolean {
    const guard = this.#guard;
    const drives = guard?.mode === 'armed' || guard?.mode === 'driving' || guard?.mode === 'limited';
    return this.mayAct && drives && guard.holder === this.console;
  }

  #touchPosition(): Position | null {
    return this.touch?.position(this.#motion) ?? null;
  }

  /**
   * Updates the absences that devices cause. `pad frozen` and `pad unsound` last as long as such a
   * device is in use; `pad gone` ends when a device comes into use.
   */
  #watchPads(): void {
    this.#hold('pad frozen', this.pads.frozen !== null);
    this.#hold('pad unsound', this.pads.unsound !== null);
    if (this.pads.cameInUse) this.presence.set('pad gone', false);
  }

  /** Begins the absence if it `holds`, else ends it. */
  #hold(absence: Absence, holds: boolean): void {
    if (holds && !this.presence.has(absence)) this.leave(absence);
    else if (!holds) this.presence.set(absence, false);
  }

  #begin(deed: Deed, nowMs: number): void {
    if (this.#guard !== null && this.#acts.emergencyStop === null) this.#acts.begin(deed, nowMs);
  }
}
