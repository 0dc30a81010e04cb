import { ByteBuffer } from 'flatbuffers';
import { describe, expect, it } from 'vitest';
import { FROM_OPERATOR } from './generated/kinds';
import { Command } from './message/command';
import { Gear } from './message/gear';
import { LinkAction } from './message/link-action';
import { OperatorStatus } from './message/operator-status';
import { DeadMan } from './message/dead-man';
import { Deed } from './message/deed';
import { Telemetry } from './message/telemetry';
import { VideoFeedback } from './message/video-feedback';
import {
  BadMessage, type Demand, answerMessage, askMessage, commandMessage, decoderMessage, flatBuffer, leaveMessage, linkActionMessage,
  parseFleet, parseHello, parsePong, parseSlice, parseStanding, parseTopics, pickMessage, pingMessage, videoFeedbackMessage,
} from './wire';

const PICTURE = { width: 640, height: 480, strips: [[0, 160], [160, 160], [320, 160]], codec: 'avc1.42c01f' };
const HELLO = { vehicle: 'Kite', version: '1', picture: PICTURE };

const STANDING = {
  role: 'drives', holder: { address: '10.0.0.7', sinceUnixMs: 1_760_000_000_000 },
  operator: { name: 'anna', key: '3f2a' }, watching: ['10.0.0.8'],
  request: { number: 4_000_000_000, address: '10.0.0.8' }, agreed: { number: 3, address: '10.0.0.9' }, reason: 'consent',
};

const PARSERS: Readonly<Record<string, (message: ArrayBuffer) => unknown>> = {
  parseSlice, parsePong, parseHello, parseStanding, parseTopics, parseFleet,
  telemetry: (message) => flatBuffer(message, Telemetry.bufferHasIdentifier),
  status: (message) => flatBuffer(message, OperatorStatus.bufferHasIdentifier),
};

function sliceMessage(change: { kind?: number; capturedAtUs?: bigint } = {}): ArrayBuffer {
  const message = new ArrayBuffer(28 + 5);
  const view = new DataView(message);
  view.setUint8(0, FROM_OPERATOR.slice);
  view.setUint8(1, 3);
  view.setUint8(2, change.kind ?? 1);
  view.setUint32(4, 0xfffffff0);
  view.setBigUint64(8, change.capturedAtUs ?? 1_760_000_000_123_456n);
  view.setUint32(16, 3_500);
  view.setUint32(20, 41_000);
  view.setUint32(24, 0x80000001);
  new Uint8Array(message, 28).set([0, 0, 0, 1, 0x41]);
  return message;
}

function pongMessage(askedAtMs: number, operatorUs: bigint): ArrayBuffer {
  const message = new ArrayBuffer(17);
  const view = new DataView(message);
  view.setUint8(0, FROM_OPERATOR.pong);
  view.setFloat64(1, askedAtMs);
  view.setBigUint64(9, operatorUs);
  return message;
}

function helloMessage(hello: unknown): ArrayBuffer {
  const body = new TextEncoder().encode(typeof hello === 'string' ? hello : JSON.stringify(hello));
  const message = new Uint8Array(1 + body.length);
  message[0] = FROM_OPERATOR.hello;
  message.set(body, 1);
  return message.buffer;
}

/** Asserts that `parse` returns or throws `BadMessage`. Any other error fails the test. */
function parsesOrRefuses(parse: (message: ArrayBuffer) => unknown, message: ArrayBuffer): 'parsed' | 'refused' {
  try {
    parse(message);
    return 'parsed';
  } catch (error) {
    if (!(error instanceof BadMessage)) throw error;
    return 'refused';
  }
}

/** Returns the same pseudorandom bytes on every run. */
function randomBytes(seed: number, count: number): Uint8Array<ArrayBuffer> {
  let state = seed * 2_654_435_761 + 1;
  return Uint8Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    return state >>> 24;
  });
}

describe('parseSlice', () => {
  it('reads the header and the access unit after it', () => {
    const slice = parseSlice(sliceMessage());
    expect(slice).toMatchObject({
      strip: 3, kind: 'predicted', picture: 0xfffffff0, capturedAtUs: 1_760_000_000_123_456, tick: 0x80000001,
    });
    expect([...slice.bytes]).toEqual([0, 0, 0, 1, 0x41]);
  });

  it('accepts only IDR, predicted and skip slices', () => {
    expect([0, 1, 2].map((kind) => parseSlice(sliceMessage({ kind })).kind)).toEqual(['idr', 'predicted', 'skip']);
    expect(() => parseSlice(sliceMessage({ kind: 3 }))).toThrow(BadMessage);
  });

  it('reads the history and whether something was lost', () => {
    const bytes = new Uint8Array(sliceMessage({ kind: 1 }));
    expect(parseSlice(bytes.buffer)).toMatchObject({ history: null, corrupt: false });
    bytes[2] = 0x81;
    bytes[3] = 6;
    expect(parseSlice(bytes.buffer)).toMatchObject({ kind: 'predicted', history: 5, corrupt: true });
  });

  it('rejects a slice cut off within or right after the header', () => {
    for (let length = 0; length <= 16; length += 1) {
      expect(() => parseSlice(sliceMessage().slice(0, length)), `${length} bytes`).toThrow(BadMessage);
    }
  });

  it('rejects a capture time that a number does not hold exactly', () => {
    expect(parseSlice(sliceMessage({ capturedAtUs: 2n ** 53n - 1n })).capturedAtUs).toBe(2 ** 53 - 1);
    expect(() => parseSlice(sliceMessage({ capturedAtUs: 2n ** 53n }))).toThrow(BadMessage);
  });
});

describe('parsePong', () => {
  it('returns both clocks in milliseconds', () => {
    expect(parsePong(pongMessage(1_760_000_000_000.5, 1_760_000_000_123_456n)))
      .toEqual({ askedAtMs: 1_760_000_000_000.5, operatorMs: 1_760_000_000_123.456 });
  });

  it('rejects a time that is not finite', () => {
    for (const time of [NaN, Infinity, -Infinity]) expect(() => parsePong(pongMessage(time, 1n))).toThrow(BadMessage);
  });

  it('rejects any other length', () => {
    for (let length = 0; length < 17; length += 1) {
      expect(() => parsePong(pongMessage(1, 1n).slice(0, length))).toThrow(BadMessage);
    }
    expect(() => parsePong(new ArrayBuffer(18))).toThrow(BadMessage);
  });
});

describe('parseHello', () => {
  it('reads a complete hello', () => expect(parseHello(helloMessage(HELLO))).toEqual(HELLO));

  it('accepts missing names of vehicle and version', () => {
    expect(parseHello(helloMessage({ picture: PICTURE }))).toMatchObject({ vehicle: '', version: '', picture: PICTURE });
  });

  it('accepts a missing picture until its size is known', () => {
    expect(parseHello(helloMessage({ ...HELLO, picture: null }))).toMatchObject({ vehicle: 'Kite', picture: null });
    expect(parseHello(helloMessage({ vehicle: 'Kite' })).picture).toBeNull();
  });

  it('rejects a hello cut off anywhere', () => {
    const whole = helloMessage(HELLO);
    for (let length = 0; length < whole.byteLength; length += 1) {
      expect(() => parseHello(whole.slice(0, length)), `${length} bytes`).toThrow(BadMessage);
    }
  });

  it('rejects bytes that are not UTF-8', () => {
    expect(() => parseHello(Uint8Array.of(FROM_OPERATOR.hello, 0x22, 0xff, 0x22).buffer)).toThrow(BadMessage);
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['a number', 7],
    ['a list', []],
    ['a picture that is no object', { ...HELLO, picture: 7 }],
    ['no width', { ...HELLO, picture: { ...PICTURE, width: undefined } }],
    ['a width of zero', { ...HELLO, picture: { ...PICTURE, width: 0 } }],
    ['a broken height', { ...HELLO, picture: { ...PICTURE, height: 479.5 } }],
    ['a side beyond 8192', { ...HELLO, picture: { ...PICTURE, width: 8193 } }],
    ['no codec', { ...HELLO, picture: { ...PICTURE, codec: null } }],
    ['no strips', { ...HELLO, picture: { ...PICTURE, strips: [] } }],
    ['nine strips', { ...HELLO, picture: { ...PICTURE, strips: Array.from({ length: 9 }, () => [0, 8]) } }],
    ['a strip that is no pair', { ...HELLO, picture: { ...PICTURE, strips: [160] } }],
    ['a strip above the picture', { ...HELLO, picture: { ...PICTURE, strips: [[-8, 160]] } }],
    ['a strip below the picture', { ...HELLO, picture: { ...PICTURE, strips: [[328, 160]] } }],
  ])('refuses %s', (_, hello) => {
    expect(() => parseHello(helloMessage(hello))).toThrow(BadMessage);
  });
});

describe('parseFleet', () => {
  const mule = {
    name: 'mule', state: 'taken', driver: 'bert', sinceUnixMs: 1_760_000_000_000, place: 'yard', links: 3, linkCount: 4, roundTripMs: 4.5,
  };
  const fleet = { picked: null, isReached: true, roundTripMs: 3.5, vehicles: [mule], refused: { vehicle: '<b>', word: 'unknown' } };

  it('reads the vehicles and the last refusal', () => expect(parseFleet(helloMessage(fleet))).toEqual(fleet));

  it('reads unknown values as null', () => {
    const bare = { ...mule, driver: null, sinceUnixMs: null, place: null, roundTripMs: null };
    const idle = { picked: 'mule', isReached: false, roundTripMs: null, vehicles: [bare], refused: null };
    expect(parseFleet(helloMessage(idle))).toEqual(idle);
    const strange = { ...fleet, refused: { vehicle: 'x', word: 'a word of a later build' } };
    expect(parseFleet(helloMessage(strange)).refused?.word).toBe('refused');
  });

  it.each([
    ['no list', { ...fleet, vehicles: 'mule' }],
    ['too many', { ...fleet, vehicles: Array.from({ length: 257 }, () => mule) }],
    ['an unknown state', { ...fleet, vehicles: [{ ...mule, state: 'mine' }] }],
    ['a name that is none', { ...fleet, vehicles: [{ ...mule, name: 7 }] }],
    ['a broken count', { ...fleet, vehicles: [{ ...mule, links: -1 }] }],
    ['a time that is none', { ...fleet, roundTripMs: 'soon' }],
    ['a pick that is no name', { ...fleet, picked: {} }],
  ])('refuses %s', (_, told) => expect(() => parseFleet(helloMessage(told))).toThrow(BadMessage));
});

describe('how this browser decodes', () => {
  it('is encoded in one byte', () => {
    expect([true, false, null].map((by) => Array.from(decoderMessage(by)))).toEqual([[9, 0], [9, 1], [9, 2]]);
  });
});

describe('requests to the fleet', () => {
  it('name a vehicle with any letters, or release it', () => {
    expect(Array.from(pickMessage('Käfer'))).toEqual([7, 0x4b, 0xc3, 0xa4, 0x66, 0x65, 0x72]);
    expect(Array.from(leaveMessage())).toEqual([8]);
  });
});

describe('parseStanding', () => {
  it('reads who drives, who asks and why', () => expect(parseStanding(helloMessage(STANDING))).toEqual(STANDING));

  it('accepts a missing driver and request', () => {
    const nobody = { role: 'waits', holder: null, request: null, agreed: null, reason: null };
    expect(parseStanding(helloMessage(nobody))).toEqual({ ...nobody, operator: null, watching: [] });
  });

  it('ignores reasons of newer versions', () => {
    expect(parseStanding(helloMessage({ ...STANDING, reason: 'lottery' })).reason).toBeNull();
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['no role', { ...STANDING, role: undefined }],
    ['another role', { ...STANDING, role: 'sleeps' }],
    ['a holder that is no object', { ...STANDING, holder: 7 }],
    ['a holder without an address', { ...STANDING, holder: { sinceUnixMs: 0 } }],
    ['a holder since never', { ...STANDING, holder: { address: '', sinceUnixMs: 0.5 } }],
    ['an operator without a key', { ...STANDING, operator: { name: 'anna' } }],
    ['one that watches from nowhere', { ...STANDING, watching: [null] }],
    ['more that watch than there may be', { ...STANDING, watching: Array(65).fill('') }],
    ['a request without a number', { ...STANDING, request: { address: '' } }],
    ['a request beyond 32 bits', { ...STANDING, request: { address: '', number: 2 ** 32 } }],
  ])('refuses %s', (_, standing) => expect(() => parseStanding(helloMessage(standing))).toThrow(BadMessage));
});

describe('the topics of other programs', () => {
  const topic = { channel: 16, topic: '/scan', encoding: 'json', schema: 'Scan', newest: { ageMs: 5, bytes: 7, text: null } };

  it('are read with the newest unit of each, if there is one', () => {
    const topics = [topic, { ...topic, channel: 17, newest: null }];
    expect(parseTopics(helloMessage(topics))).toEqual(topics);
  });

  it.each([
    ['no list', {}], ['no name', [{ ...topic, topic: 7 }]], ['no number', [{ ...topic, channel: -1 }]],
    ['no size', [{ ...topic, newest: { ageMs: 5, bytes: '7' } }]], ['too many', Array(65).fill(topic)],
  ])('refuses %s', (_, topics) => expect(() => parseTopics(helloMessage(topics))).toThrow(BadMessage));
});

describe('flatBuffer', () => {
  it('rejects a message that is too short or has another identifier', () => {
    expect(() => flatBuffer(new ArrayBuffer(8), Telemetry.bufferHasIdentifier)).toThrow(BadMessage);
    expect(() => flatBuffer(new ArrayBuffer(64), Telemetry.bufferHasIdentifier)).toThrow(BadMessage);
  });

  it('starts after the kind byte', () => {
    const message = linkActionMessage(2, true);
    const action = LinkAction.getRootAsLinkAction(flatBuffer(message.buffer, LinkAction.bufferHasIdentifier));
    expect([action.link(), action.cut()]).toEqual([2, true]);
  });
});

describe.each(Object.entries(PARSERS))('%s', (_, parse) => {
  it('throws only BadMessage on 2000 random messages', () => {
    for (let seed = 0; seed < 2_000; seed += 1) {
      parsesOrRefuses(parse, randomBytes(seed, seed % 97).buffer);
    }
  });

  it('throws only BadMessage on complete messages with one byte changed', () => {
    for (const whole of [sliceMessage(), pongMessage(5, 5n), helloMessage(HELLO), helloMessage(STANDING)]) {
      for (let at = 0; at < whole.byteLength; at += 1) {
        for (const value of [0x00, 0x22, 0x7f, 0x80, 0xff]) {
          const message = whole.slice(0);
          new Uint8Array(message)[at] = value;
          parsesOrRefuses(parse, message);
        }
      }
    }
  });
});

describe('commandMessage', () => {
  const demand: Demand = {
    steering: -0.25, throttle: 0.5, brake: 0.125, gear: Gear.Reverse, emergencyStop: true,
    act: null, emergencyStopNumber: 0, deadMan: 'absent', absences: 0, twist: null, axes: [], actions: 0,
  };

  function commandOf(message: Uint8Array) {
    expect(message[0]).toBe(1);
    const buffer = new ByteBuffer(message.subarray(1));
    expect(Command.bufferHasIdentifier(buffer)).toBe(true);
    return Command.getRootAsCommand(buffer);
  }

  const controlsOf = (message: Uint8Array) => commandOf(message).controls()!;

  it('carries what the vehicle should do', () => {
    const controls = controlsOf(commandMessage(demand, 0, 1));
    expect([controls.steering(), controls.throttle(), controls.brake()]).toEqual([-0.25, 0.5, 0.125]);
    expect([controls.gear(), controls.emergencyStop()]).toEqual([Gear.Reverse, true]);
  });

  it('writes the time in nanoseconds with microsecond resolution', () => {
    expect(controlsOf(commandMessage(demand, 0, 1_760_000_000_123.456)).sentAtNs()).toBe(1_760_000_000_123_456_000n);
  });

  it('writes time 0 while the operator\'s clock is unknown', () => {
    expect(controlsOf(commandMessage(demand, 0, null)).sentAtNs()).toBe(0n);
  });

  it('cites the newest picture seen, and reports the presence of a person', () => {
    const told: Demand = { ...demand, deadMan: 'released', absences: 0b1100, actions: 0b10_0001, emergencyStopNumber: 0xfffffff1 };
    const command = commandOf(commandMessage(told, 0xfffffff0, 1));
    expect(command.cited()).toBe(0xfffffff0);
    expect([command.deadMan(), command.absences(), command.actions()]).toEqual([DeadMan.Released, 0b1100, 0b10_0001]);
    expect(command.emergencyStopNumber()).toBe(0xfffffff1);
    expect(command.act()).toBeNull();
  });

  it('carries an action with its number, and a reset with its stop', () => {
    const acts = [{ kind: 'arm' }, { kind: 'reset', stop: 7 }, { kind: 'park' }, { kind: 'take over' }, { kind: 'request', action: 31 }] as const;
    const read = acts.map((deed) => {
      const act = commandOf(commandMessage({ ...demand, act: { number: 3, deed } }, 0, 1)).act()!;
      return [act.number(), act.deed(), act.stop()];
    });
    expect(read).toEqual([[3, Deed.Arm, 0], [3, Deed.Reset, 7], [3, Deed.Park, 0], [3, Deed.TakeOver, 0], [3, Deed.Request, 31]]);
  });

  it('carries the motion of a machine that a twist moves, also if it is 0, and none of a car', () => {
    const read = (twist: Demand['twist']) => {
      const told = commandOf(commandMessage({ ...demand, twist }, 0, 1)).twist();
      return told === null ? null : [told.forwardMps(), told.sidewaysMps(), told.yawRate()];
    };
    expect(read({ forward: 1.5, sideways: -0.25, yawRate: 0.75 })).toEqual([1.5, -0.25, 0.75]);
    expect(read({ forward: 0, sideways: 0, yawRate: 0 })).toEqual([0, 0, 0]);
    expect(read(null)).toBeNull();
  });

  it('carries set points of axes and actions, and no axes without a set point', () => {
    const command = commandOf(commandMessage({ ...demand, axes: [0.5, NaN, -2], actions: 0x8000_0005 }, 0, 1));
    expect(Array.from({ length: command.axesLength() }, (_, index) => command.axes(index))).toEqual([0.5, NaN, -2]);
    expect(command.actions()).toBe(0x8000_0005);
    const none = commandOf(commandMessage({ ...demand, axes: [NaN, NaN] }, 0, 1));
    expect([none.axesLength(), none.actions()]).toEqual([0, 0]);
  });

  it('leaves the sequence number to the operator', () => {
    expect(controlsOf(commandMessage(demand, 0, 1)).sequence()).toBe(0n);
  });
});

describe('small messages', () => {
  it('a ping is its kind and the time as a float, answered by a pong', () => {
    const ping = pingMessage(1_760_000_000_000.25);
    expect([ping.length, ping[0]]).toEqual([9, 3]);
    expect(new DataView(ping.buffer).getFloat64(1)).toBe(1_760_000_000_000.25);
  });

  it('a request to drive is one bit, and an answer names its request', () => {
    expect([...askMessage(true), ...askMessage(false)]).toEqual([5, 1, 5, 0]);
    expect([...answerMessage(0x0102_0384, true)]).toEqual([6, 1, 2, 3, 0x84, 1]);
  });

  it('video feedback carries keyframe requests and the picture interval', () => {
    const message = videoFeedbackMessage(0b1000_0001, 3, 1920 * 1080);
    expect(message[0]).toBe(4);
    const buffer = new ByteBuffer(message.subarray(1));
    expect(VideoFeedback.bufferHasIdentifier(buffer)).toBe(true);
    const feedback = VideoFeedback.getRootAsVideoFeedback(buffer);
    expect([feedback.keyframeStrips(), feedback.pictureInterval(), feedback.stripsLength()]).toEqual([0b1000_0001, 3, 0]);
    expect(feedback.pixelsMax()).toBe(2_073_600);
  });
});
