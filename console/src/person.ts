import { Acts, type ActsView, type Deed } from './acts';
import { Gamepads, type Quiet } from './input/gamepad';
import { Keyboard, type Press } from './input/keyboard';
import { type Numbering } from './input/known';
import { type Absence, type DeadMan, DeadManInput, Presence } from './input/presence';
import { STANDSTILL_MPS, Seat } from './input/seat';
import { type GuardView, type Signal, bitsOf, SIGNALS } from './guard';
import type { TelemetryView } from './report';
import { Signals } from './signals';
import type { Demand } from './wire';

export interface PersonEvents {
  /** What cannot wait for the next tick. */
  urgent(): void;
  /** An emergency stop was asked for: whether it was heard is to be told soon. */
  stopAsked(): void;
  help(): void;
}

/** What a person asks or says of the check of the steering. */
export type SteeringDeed = Extract<Deed['kind'], `${string}steering${string}`>;

/** The person who drives: devices, presence and acts, and what they make of each tick. */
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
  /** The page's own button of it. */
  hornPressed = false;
  /** Another console drives and has agreed that this one takes over. */
  succeeds = false;
  /** False: a vehicle is to be picked first, or this page only watches; then nothing is asked of any. */
  mayAct = true;

  /** `console`: this page's own number; `random`: in [0, 1); `numbering`: how this browser numbers the axes of pads. */
  constructor(console: bigint, random: number, storage: Storage, numbering: Numbering, readonly events: PersonEvents) {
    this.#acts = new Acts(console, random);
    this.deadMan = new DeadManInput(storage);
    this.pads = new Gamepads({
      emergencyStop: () => this.stop(performance.now()),
      toggleReverse: () => this.press('reverse'),
      gone: () => this.leave('pad gone'), // Found while a command is being made.
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

  /** What the person is told of it. */
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

  /** Has the wheels of the armed machine turned, or says what was seen of that. */
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

  /** The person pressed or clicked something here: a device that is not to be believed is no longer in use. */
  takeUp(): void {
    this.pads.dropTroubled();
    this.presence.takeUp();
  }

  /** Something speaks against the person's presence: nothing that was held counts any more. */
  leave(absence: Absence): void {
    this.#keyboard.releaseAll();
    this.pads.disarm();
    this.#acts.withdraw();
    this.hornPressed = false;
    this.presence.set(absence, true);
  }

  /** What was asked of a vehicle that was let go of is not asked of the next one. */
  forget(): void {
    this.#guard = null;
    this.#acts.forget();
    this.seat.resume();
  }

  /** Takes what the vehicle tells, `atMs` by `performance.now`. A guard that says nothing acknowledges nothing. */
  observe({ guard }: Pick<TelemetryView, 'guard'>, atMs: number): void {
    this.#guard = guard;
    if (guard === null) return;
    this.#acts.observe(guard, atMs);
    if (guard.blockers.includes('dead-man')) this.deadMan.require();
    // From here on the guard holds it, whatever this page does.
    if (this.#acts.emergencyStop === null) this.seat.resume();
  }

  /** `speedMps` null: not known; `calibrating`: a device is moved about to be measured, and none drives. */
  command(speedMps: number | null, calibrating: boolean, seconds: number): Demand {
    const nowMs = performance.now();
    this.#speedMps = speedMps;
    const keys = this.#keyboard.keys();
    const driven = this.#guard !== null && this.#guard.mode !== 'held';
    const moves = driven && (speedMps === null || Math.abs(speedMps) > STANDSTILL_MPS);
    // A pad's throttle that is held meanwhile, or frozen, must not come back when the key goes up.
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
    // A key that went up with the rest, as something began to speak against the person, is not down any more.
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

  /** What is wrong with a device in use ends with the device's next sign of life, or when the person drives by another. */
  #watchPads(): void {
    this.#hold('pad frozen', this.pads.frozen !== null);
    this.#hold('pad unsound', this.pads.unsound !== null);
    if (this.pads.cameInUse) this.presence.set('pad gone', false);
  }

  #hold(absence: Absence, holds: boolean): void {
    if (holds && !this.presence.has(absence)) this.leave(absence);
    else if (!holds) this.presence.set(absence, false);
  }

  #begin(deed: Deed, nowMs: number): void {
    if (this.#guard !== null && this.#acts.emergencyStop === null) this.#acts.begin(deed, nowMs);
  }
}
