/**
 * The binary messages of the WebSocket. The first byte is the kind; numbers are big-endian.
 *
 * Operator to console: slice, telemetry, status, pong, hello, snapshot, standing, topics, fleet.
 * Console to operator: command, link action, ping, video feedback, ask, answer, pick, leave,
 * decoder. Invalid bytes throw a `BadMessage`, which the caller counts.
 */
import { ByteBuffer, Builder } from 'flatbuffers';
import type { Act as WantedAct, Deed } from './acts';
import {
  DECODERS, type Decoder, FLEET_WORDS, type FleetWord, REASONS, ROLES, type Reason, type Role, TO_OPERATOR, VEHICLE_STATES,
  type VehicleState,
} from './generated/kinds';
import type { DeadMan } from './input/presence';
import { Act } from './message/act';
import { Command } from './message/command';
import { Controls } from './message/controls';
import { DeadMan as WireDeadMan } from './message/dead-man';
import { Deed as WireDeed } from './message/deed';
import type { Gear } from './message/gear';
import { LinkAction } from './message/link-action';
import { Twist as WireTwist } from './message/twist';
import { VideoFeedback } from './message/video-feedback';
import type { Twist } from './twist';

export type SliceKind = 'idr' | 'predicted' | 'skip';

export interface Slice {
  strip: number;
  kind: SliceKind;
  picture: number;
  /** Start of the strip's readout in Unix microseconds on the operator's clock; 0 if unknown. */
  capturedAtUs: number;
  /** Time from the capture to the end of encoding, in microseconds. */
  encodedAfterUs: number;
  /** Time from the capture until the operator's process forwarded the slice, in microseconds. */
  handedOnAfterUs: number;
  /** Number of preceding slices of the strip that its content depends on; `null` if unknown. */
  history: number | null;
  /** True if the operator's process knows of a lost slice that this one depends on. */
  corrupt: boolean;
  /**
   * Guard's tick in the picture's stamp; 0 if it has none. Commands cite it once the picture is
   * seen.
   */
  tick: number;
  /** One access unit in Annex B format: a view into the message, not a copy. */
  bytes: Uint8Array;
}

/** First message of the operator's process, repeated whenever the picture format changes. */
export interface Hello {
  vehicle: string;
  version: string;
  /** `null` until the sizes of all strips are known. */
  picture: PictureFormat | null;
}

/** Layout and codec of the vehicle's pictures. */
export interface PictureFormat {
  width: number;
  height: number;
  /** First row and row count of each strip. */
  strips: [y: number, height: number][];
  codec: string;
}

/** The console that drives, the role of this one, and the requests of consoles to drive. */
export interface Standing {
  role: Role;
  /** Console that drives, and since when; `null` if none does. */
  holder: { address: string; sinceUnixMs: number } | null;
  /**
   * Operator whose consoles these are, as listed at the switchboard; `null` from an older operator
   * process.
   */
  operator: { name: string; key: string } | null;
  /** Addresses of the consoles, other than this one, that do not drive. */
  watching: string[];
  /** Request of another console to drive, if this one drives; `null` if there is none. */
  request: { number: number; address: string } | null;
  /**
   * Request that was agreed to: this console hands over to the one that made it. `null` if there is
   * none.
   */
  agreed: { number: number; address: string } | null;
  /** Why this console drives or no longer drives; `null` if it never drove. */
  reason: Reason | null;
}

/** A topic of another program, with its newest unit. */
export interface TopicView {
  channel: number;
  topic: string;
  /** Encoding by its MCAP name; empty if none is declared. */
  encoding: string;
  schema: string;
  /** `null` before the first unit. */
  newest: {
    /** Age of the unit when this message was sent. */
    ageMs: number;
    bytes: number;
    /** Beginning of the text; `null` if the unit is not text. */
    text: string | null;
  } | null;
}

/** The vehicles at the switchboard, from which a person picks one. */
export interface FleetView {
  /** Picked vehicle; `null` if none is picked. */
  picked: string | null;
  /** True if the switchboard is reachable. */
  isReached: boolean;
  /**
   * Round trip in ms between operator and switchboard when the list was sent; `null` if unknown.
   */
  roundTripMs: number | null;
  /** Vehicles to pick from. Once one is picked, this list is no longer updated. */
  vehicles: VehicleView[];
  /** Last request that was refused, with the reason; `null` if there is none. */
  refused: { vehicle: string; word: FleetWord } | null;
}

export interface VehicleView {
  name: string;
  /** `own` means that this operator still leases it, from an earlier run. */
  state: VehicleState;
  /**
   * Operator that drives it; `null` if nobody does, or if an older switchboard does not report it.
   */
  driver: string | null;
  /** Time since which the vehicle is driven or away; `null` if unknown. */
  sinceUnixMs: number | null;
  place: string | null;
  /** Number of the vehicle's links with a known address; 0 if unknown. */
  links: number;
  /** Number of all links of the vehicle; 0 if unknown. */
  linkCount: number;
  /** Round trip between vehicle and switchboard in ms; `null` if unknown. */
  roundTripMs: number | null;
}

export interface Pong {
  /** Time of the ping on the console's clock, in ms. */
  askedAtMs: number;
  /** Time of the answer on the operator's clock, in Unix ms. */
  operatorMs: number;
}

/**
 * Content of one command: what the operator wants, and whether the operator is present with usable
 * inputs.
 */
export interface Demand extends Controlled {
  /** Action that is pending; `null` if there is none. */
  act: WantedAct | null;
  /** Number of the newest unacknowledged emergency stop; 0 if none. */
  emergencyStopNumber: number;
  deadMan: DeadMan;
  /** Bit mask of the absences, by their index in `GUARD_ABSENCES`. */
  absences: number;
  /** Set points of the declared axes by number; NaN: none. */
  axes: readonly number[];
  /** Bit mask of the declared actions that are held or switched on. */
  actions: number;
}

/** Controls that the operator wants now. */
export interface Controlled {
  /** -1 to 1 of full lock, left positive. */
  steering: number;
  /** 0 to 1. */
  throttle: number;
  /** 0 to 1. */
  brake: number;
  gear: Gear;
  emergencyStop: boolean;
  /** Wanted motion of a machine that a twist moves; `null` for a car. */
  twist: Twist | null;
}

export class BadMessage extends Error {}

const SLICE_HEADER_BYTES = 28;
/** Flag in the byte of the slice kind that means `corrupt`. */
const CORRUPT = 0x80;
const SLICE_KINDS: readonly SliceKind[] = ['idr', 'predicted', 'skip'];
const CONSOLES_MAX = 64; // More than an operator process accepts.
const TOPICS_MAX = 64;
const VEHICLES_MAX = 256;
const STRIPS_MAX = 8; // Keyframe requests are a mask of eight bits.
const SIDE_MAX = 8192;

export function parseSlice(message: ArrayBuffer): Slice {
  if (message.byteLength <= SLICE_HEADER_BYTES) throw new BadMessage('slice without bytes');
  const view = new DataView(message);
  const kind = SLICE_KINDS[view.getUint8(2) & ~CORRUPT];
  if (kind === undefined) throw new BadMessage(`slice kind ${view.getUint8(2)}`);
  const history = view.getUint8(3);
  return {
    strip: view.getUint8(1),
    kind,
    picture: view.getUint32(4),
    capturedAtUs: readMicroseconds(view, 8),
    encodedAfterUs: view.getUint32(16),
    handedOnAfterUs: view.getUint32(20),
    history: history === 0 ? null : history - 1,
    corrupt: (view.getUint8(2) & CORRUPT) !== 0,
    tick: view.getUint32(24),
    bytes: new Uint8Array(message, SLICE_HEADER_BYTES),
  };
}

export function parsePong(message: ArrayBuffer): Pong {
  if (message.byteLength !== 17) throw new BadMessage(`pong of ${message.byteLength} bytes`);
  const view = new DataView(message);
  const askedAtMs = view.getFloat64(1);
  if (!Number.isFinite(askedAtMs)) throw new BadMessage('pong time is not finite');
  return { askedAtMs, operatorMs: readMicroseconds(view, 9) / 1000 };
}

export function parseHello(message: ArrayBuffer): Hello {
  const hello = parseJson(message) as Partial<Record<keyof Hello, unknown>> | null;
  if (typeof hello !== 'object' || hello === null || Array.isArray(hello)) throw new BadMessage('hello is no object');
  const { vehicle, version, picture } = hello;
  return {
    vehicle: typeof vehicle === 'string' ? vehicle : '',
    version: typeof version === 'string' ? version : '',
    picture: picture === undefined || picture === null ? null : pictureFormat(picture),
  };
}

export function parseStanding(message: ArrayBuffer): Standing {
  const { role, holder, operator, watching, request, agreed, reason } = fieldsOf(parseJson(message));
  const known = ROLES.find((name) => name === role);
  if (known === undefined) throw new BadMessage('standing: no role');
  return {
    role: known,
    holder: holder === null ? null : holderOf(fieldsOf(holder)),
    operator: operator == null ? null : operatorOf(fieldsOf(operator)),
    watching: watching === undefined ? [] : addressesOf(watching),
    request: request === null ? null : requestOf(fieldsOf(request)),
    agreed: agreed == null ? null : requestOf(fieldsOf(agreed)),
    reason: REASONS.find((name) => name === reason) ?? null,
  };
}

export function parseTopics(message: ArrayBuffer): TopicView[] {
  const topics = parseJson(message);
  if (!Array.isArray(topics) || topics.length > TOPICS_MAX) throw new BadMessage('topics: no list');
  return topics.map((told: unknown) => {
    const { channel, topic, encoding, schema, newest } = fieldsOf(told);
    if (typeof topic !== 'string' || typeof encoding !== 'string' || typeof schema !== 'string') throw new BadMessage('topics: no name');
    return { channel: countOf(channel), topic, encoding, schema, newest: newest === null ? null : newestOf(fieldsOf(newest)) };
  });
}

export function parseFleet(message: ArrayBuffer): FleetView {
  const { picked, isReached, roundTripMs, vehicles, refused } = fieldsOf(parseJson(message));
  if (!Array.isArray(vehicles) || vehicles.length > VEHICLES_MAX) throw new BadMessage('fleet: no list');
  return {
    picked: nullOr(picked, textOf),
    isReached: isReached === true,
    roundTripMs: nullOr(roundTripMs, numberOf),
    vehicles: vehicles.map((vehicle: unknown) => vehicleOf(fieldsOf(vehicle))),
    refused: nullOr(refused, (value) => {
      const { vehicle, word } = fieldsOf(value);
      return { vehicle: textOf(vehicle), word: FLEET_WORDS.find((known) => known === word) ?? 'refused' };
    }),
  };
}

function vehicleOf({ name, state, driver, sinceUnixMs, place, links, linkCount, roundTripMs }: Record<string, unknown>): VehicleView {
  const known = VEHICLE_STATES.find((word) => word === state);
  if (known === undefined) throw new BadMessage('fleet: no state');
  return {
    name: textOf(name), state: known, driver: nullOr(driver, textOf), sinceUnixMs: nullOr(sinceUnixMs, countOf),
    place: nullOr(place, textOf), links: countOf(links), linkCount: countOf(linkCount), roundTripMs: nullOr(roundTripMs, numberOf),
  };
}

function nullOr<T>(value: unknown, read: (value: unknown) => T): T | null {
  return value === null || value === undefined ? null : read(value);
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new BadMessage('no text');
  return value;
}

function numberOf(value: unknown): number {
  if (!Number.isFinite(value)) throw new BadMessage('no number');
  return value as number;
}

function newestOf({ ageMs, bytes, text }: Record<string, unknown>): NonNullable<TopicView['newest']> {
  return { ageMs: countOf(ageMs), bytes: countOf(bytes), text: typeof text === 'string' ? text : null };
}

function countOf(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new BadMessage('no count');
  return value as number;
}

function holderOf({ address, sinceUnixMs }: Record<string, unknown>): NonNullable<Standing['holder']> {
  if (typeof address !== 'string' || !Number.isSafeInteger(sinceUnixMs)) throw new BadMessage('standing: bad holder');
  return { address, sinceUnixMs: sinceUnixMs as number };
}

function operatorOf({ name, key }: Record<string, unknown>): NonNullable<Standing['operator']> {
  if (typeof name !== 'string' || typeof key !== 'string') throw new BadMessage('standing: bad operator');
  return { name, key };
}

function addressesOf(value: unknown): string[] {
  const isAddresses = Array.isArray(value) && value.length <= CONSOLES_MAX;
  if (!isAddresses || !value.every((address) => typeof address === 'string')) throw new BadMessage('standing: bad addresses');
  return value;
}

function requestOf({ number, address }: Record<string, unknown>): NonNullable<Standing['request']> {
  const isNumber = Number.isInteger(number) && (number as number) >= 0 && (number as number) < 2 ** 32;
  if (typeof address !== 'string' || !isNumber) throw new BadMessage('standing: bad request');
  return { number: number as number, address };
}

function fieldsOf(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw new BadMessage('no object');
  return value as Record<string, unknown>;
}

function pictureFormat(picture: unknown): PictureFormat {
  if (typeof picture !== 'object' || picture === null) throw new BadMessage('hello: picture is no object');
  const { width, height, strips, codec } = picture as Partial<Record<keyof PictureFormat, unknown>>;
  if (!isSide(width) || !isSide(height)) throw new BadMessage('hello: bad size');
  if (typeof codec !== 'string') throw new BadMessage('hello: no codec');
  if (!Array.isArray(strips) || strips.length === 0 || strips.length > STRIPS_MAX) {
    throw new BadMessage('hello: bad strips');
  }
  const rows = strips.map((strip: unknown): [number, number] => {
    if (!Array.isArray(strip)) throw new BadMessage('hello: bad strip');
    const [y, rowCount] = strip as unknown[];
    if (!Number.isInteger(y) || !isSide(rowCount)) throw new BadMessage('hello: bad strip');
    if ((y as number) < 0 || (y as number) + rowCount > height) throw new BadMessage('hello: strip outside');
    return [y as number, rowCount];
  });
  return { width, height, strips: rows, codec };
}

/** Parses the JSON text after the kind byte. */
function parseJson(message: ArrayBuffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array(message, 1)));
  } catch {
    throw new BadMessage('no JSON');
  }
}

/**
 * Returns the FlatBuffer after the kind byte. Throws if it is too short or has another identifier.
 */
export function flatBuffer(message: ArrayBuffer, hasIdentifier: (buffer: ByteBuffer) => boolean): ByteBuffer {
  if (message.byteLength < 1 + 8) throw new BadMessage('too short for a FlatBuffer');
  const buffer = new ByteBuffer(new Uint8Array(message, 1));
  if (!hasIdentifier(buffer)) throw new BadMessage('wrong FlatBuffer identifier');
  return buffer;
}

/**
 * Encodes a command.
 *
 * `cited` is the guard's tick of the newest picture seen here; 0 for none. `sentAtMs` is the Unix
 * time on the operator's clock, from which the operator's process sees that a command is delayed,
 * and drops it; `null` while that clock is unknown. The operator's process fills in the sequence
 * number and this console's number.
 */
export function commandMessage(demand: Demand, cited: number, sentAtMs: number | null): Uint8Array<ArrayBuffer> {
  const sentAtNs = BigInt(Math.round((sentAtMs ?? 0) * 1000)) * 1000n;
  const builder = new Builder(256);
  const axes = demand.axes.every(Number.isNaN) ? null : Command.createAxesVector(builder, [...demand.axes]);
  Command.startCommand(builder);
  Command.addControls(builder, Controls.createControls(
    builder, 0n, sentAtNs, demand.steering, demand.throttle, demand.brake, demand.gear, demand.emergencyStop));
  Command.addCited(builder, cited);
  if (demand.act !== null) {
    const { number, deed } = demand.act;
    Command.addAct(builder, Act.createAct(builder, number, argumentOf(deed), DEEDS[deed.kind]));
  }
  Command.addEmergencyStopNumber(builder, demand.emergencyStopNumber);
  Command.addDeadMan(builder, DEAD_MEN[demand.deadMan]);
  Command.addAbsences(builder, demand.absences);
  if (axes !== null) Command.addAxes(builder, axes);
  Command.addActions(builder, demand.actions);
  if (demand.twist !== null) {
    const { forward, sideways, yawRate } = demand.twist;
    Command.addTwist(builder, WireTwist.createTwist(builder, forward, sideways, yawRate));
  }
  Command.finishCommandBuffer(builder, Command.endCommand(builder));
  return withKind(TO_OPERATOR.command, builder.asUint8Array());
}

/** Argument of an action: the stop to reset, or the declared action to ask for. */
function argumentOf(deed: Deed): number {
  return deed.kind === 'reset' ? deed.stop : deed.kind === 'request' ? deed.action : 0;
}

const DEEDS: Readonly<Record<Deed['kind'], WireDeed>> = {
  arm: WireDeed.Arm, reset: WireDeed.Reset, park: WireDeed.Park,
  'take over': WireDeed.TakeOver, request: WireDeed.Request,
  'check steering': WireDeed.CheckSteering, 'steering agrees': WireDeed.SteeringAgrees,
  'steering wrong': WireDeed.SteeringWrong, 'steering unseen': WireDeed.SteeringUnseen,
};
const DEAD_MEN: Readonly<Record<DeadMan, WireDeadMan>> = {
  absent: WireDeadMan.Absent, held: WireDeadMan.Held, released: WireDeadMan.Released,
};

/**
 * Encodes a request to cut or restore an emulated link; `link` is its index among `emulatedLinks`
 * of the status.
 */
export function linkActionMessage(link: number, cut: boolean): Uint8Array<ArrayBuffer> {
  const builder = new Builder(32);
  LinkAction.finishLinkActionBuffer(builder, LinkAction.createLinkAction(builder, link, cut));
  return withKind(TO_OPERATOR.linkAction, builder.asUint8Array());
}

export function pingMessage(nowMs: number): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(9);
  message[0] = TO_OPERATOR.ping;
  new DataView(message.buffer).setFloat64(1, nowMs);
  return message;
}

/**
 * Encodes feedback on the video.
 *
 * `keyframeStrips` requests an IDR of strip n for each bit n that is set. `pictureInterval` asks
 * for every n-th picture, 1 to 8. `pixelsMax` is the largest picture, in pixels, that this page
 * shows in time; `null` if unknown. The operator's process adds what it received.
 */
export function videoFeedbackMessage(keyframeStrips: number, pictureInterval: number, pixelsMax: number | null): Uint8Array<ArrayBuffer> {
  const builder = new Builder(32);
  VideoFeedback.startVideoFeedback(builder);
  VideoFeedback.addKeyframeStrips(builder, keyframeStrips & 0xff);
  VideoFeedback.addPictureInterval(builder, pictureInterval);
  VideoFeedback.addPixelsMax(builder, pixelsMax ?? 0);
  VideoFeedback.finishVideoFeedbackBuffer(builder, VideoFeedback.endVideoFeedback(builder));
  return withKind(TO_OPERATOR.videoFeedback, builder.asUint8Array());
}

/** Encodes a request to drive, or its withdrawal if not `asks`. */
export function askMessage(asks: boolean): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(TO_OPERATOR.ask, asks ? 1 : 0);
}

/** Encodes the answer to the request with this number. */
export function answerMessage(request: number, agrees: boolean): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(6);
  message[0] = TO_OPERATOR.answer;
  new DataView(message.buffer).setUint32(1, request);
  message[5] = agrees ? 1 : 0;
  return message;
}

/** Encodes the choice of a vehicle by its name. */
export function pickMessage(vehicle: string): Uint8Array<ArrayBuffer> {
  return withKind(TO_OPERATOR.pick, new TextEncoder().encode(vehicle));
}

/** Encodes the release of the vehicle, after which another can be picked. */
export function leaveMessage(): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(TO_OPERATOR.leave);
}

/** Encodes whether this browser decodes in hardware; `null` if it does not report it. */
export function decoderMessage(byHardware: boolean | null): Uint8Array<ArrayBuffer> {
  const decoder: Decoder = byHardware === null ? 'unknown' : byHardware ? 'hardware' : 'processor';
  return Uint8Array.of(TO_OPERATOR.decoder, DECODERS.indexOf(decoder));
}

function withKind(kind: number, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(1 + body.length);
  message[0] = kind;
  message.set(body, 1);
  return message;
}

/** Reads a 64-bit time in microseconds. Times since 1970 stay below 2^53 until the year 2255. */
function readMicroseconds(view: DataView, offset: number): number {
  const value = view.getUint32(offset) * 2 ** 32 + view.getUint32(offset + 4);
  if (!Number.isSafeInteger(value)) throw new BadMessage('time beyond 2^53 microseconds');
  return value;
}

function isSide(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 0 && (value as number) <= SIDE_MAX;
}
