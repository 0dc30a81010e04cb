import { Acts, type ActsView, type Deed } from './acts';
import { Gamepads, type Quiet } from './input/gamepad';
import { Keyboard, type Press } from './input/keyboard';
import { type Numbering } from './input/known';
import { type Absence, type DeadMan, DeadManInput, Presence } from './input/presence';
import { STANDSTILL_MPS, Seat } from './input/seat';
import { type Signal, SIGNALS } from './generated/kinds';
import { type GuardView, bitsOf } from './guard';
import type { TelemetryView } from './report';
import { Signals } from './signals';
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

/** Actions of the steering check. */
export type SteeringDeed = Extract<Deed['kind'], `${string}steering${string}`>;

/**
 * The operator at this page: devices, presence and actions, combined into one command at each tick.
 */
export class Person {
  readonly seat = new Seat();
  readonly presence = new Presence();
  readonly deadMan: DeadManInput;
  readonly signals = new Signals();
  readonly pads: Gamepads;
  readonly #keyboard: Keyboard;
  readonly #acts: Acts;
  #guard: GuardView | null = null;
  #held: DeadMan = 'absent';
  #speedMps: number | null = null;
  /** True if the page's horn button is pressed. */
  hornPressed = false;
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
  constructor(console: bigint, random: number, storage: Storage, numbering: Numbering, readonly events: PersonEvents) {
    this.#acts = new Acts(console, random);
    this.deadMan = new DeadManInput(storage);
    this.pads = new Gamepads({
      emergencyStop: () => this.stop(performance.now()),
      toggleReverse: () => this.press('reverse'),
      gone: () => this.leave('pad gone'), // Called while a command is being built.
    }, storage, numbering);
    this.#keyboard = new Keyboard(window, {
      press: (press) => this.press(press),
      touched: () => this.takeUp(),
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
        this.seat.toggleReverse(this.#speedMps);
        return;
      case 'help':
        this.events.help();
        return;
      default:
        this.signals.press(press);
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

  /** Begins an absence: keys that are held, pedals and the pending action no longer count. */
  leave(absence: Absence): void {
    this.#keyboard.releaseAll();
    this.pads.disarm();
    this.#acts.withdraw();
    this.hornPressed = false;
    this.presence.set(absence, true);
  }

  /** Drops all requests, because the vehicle was released. */
  forget(): void {
    this.#guard = null;
    this.#acts.forget();
    this.seat.resume();
  }

  /**
   * Handles the vehicle's telemetry; `atMs` is a time of `performance.now`. While the guard is
   * silent, nothing is acknowledged.
   */
  observe({ guard }: Pick<TelemetryView, 'guard'>, atMs: number): void {
    this.#guard = guard;
    if (guard === null) return;
    this.#acts.observe(guard, atMs);
    if (guard.blockers.includes('dead man')) this.deadMan.require();
    // Once acknowledged, the guard keeps the stop, whatever this page does.
    if (this.#acts.emergencyStop === null) this.seat.resume();
  }

  /**
   * Returns the command of a tick, `seconds` after the last one. `speedMps` is `null` if unknown.
   * While `calibrating`, no device drives.
   */
  command(speedMps: number | null, calibrating: boolean, seconds: number): Demand {
    const nowMs = performance.now();
    this.#speedMps = speedMps;
    const keys = this.#keyboard.keys();
    const driven = this.#guard !== null && this.#guard.mode !== 'held';
    const moves = driven && (speedMps === null || Math.abs(speedMps) > STANDSTILL_MPS);
    // The throttle of a pad that is held or frozen while a brake key is down must not return with
    // its release.
    if (keys.brake || keys.hardBrake) this.pads.disarm();
    const pad = this.pads.read({ driven, moves, keysDrive: Object.values(keys).includes(true) }, nowMs);
    this.#watchPads();
    this.#hold('calibrating', calibrating);
    this.#held = this.deadMan.read(this.#keyboard.deadMan || pad?.deadMan === true);
    this.presence.set('dead-man released', this.#held === 'released');
    const { worst } = this.presence;
    if (worst !== null) this.seat.letGo(worst);
    else if (this.seat.released !== 'none') this.seat.takeUp();
    this.signals.horn = this.#keyboard.horn || this.hornPressed;
    // Read the keys again: a new absence releases all of them.
    const devices = { keys: this.#keyboard.keys(), pad: calibrating ? null : pad, speedMps };
    return {
      ...this.seat.command(devices, seconds),
      act: this.#acts.act(nowMs),
      emergencyStopNumber: this.#acts.emergencyStop ?? 0,
      deadMan: this.#held,
      absences: this.presence.bits,
      signals: bitsOf<Signal>(SIGNALS, this.signals.list()),
    };
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
