import { Builder } from 'flatbuffers';
import { describe, expect, it } from 'vitest';
import { ChannelStats } from './message/channel-stats';
import { Delays } from './message/delays';
import { DropCount } from './message/drop-count';
import { End } from './message/end';
import { Gear } from './message/gear';
import { LinkState } from './message/link-state';
import { RateCause } from './message/rate-cause';
import { RateControl } from './message/rate-control';
import { LinkStats } from './message/link-stats';
import { ProcessStats } from './message/process-stats';
import { SessionStats } from './message/session-stats';
import { Snapshot } from './message/snapshot';
import { Telemetry } from './message/telemetry';
import { Value } from './message/value';
import { readSnapshot, readTelemetry } from './reading';
import { type Said, statusFrame } from '../e2e/status.mjs';
import { FAULTS, type Fault, FROM_OPERATOR, MACHINE_AGE_MAX_MS } from './generated/kinds';
import { bitsOf } from './guard';
import { BadMessage } from './wire';

interface Parts {
  end?: End;
  session?: boolean;
  process?: boolean;
  linkCount?: number;
}

function snapshotMessage({ end = End.Vehicle, session = true, process = true, linkCount = 1 }: Parts = {}): ArrayBuffer {
  const builder = new Builder(512);
  const sessionStats = session ? buildSession(builder, linkCount) : 0;
  const processStats = process ? buildProcess(builder) : 0;
  Snapshot.startSnapshot(builder);
  Snapshot.addEnd(builder, end);
  if (session) Snapshot.addSession(builder, sessionStats);
  if (process) Snapshot.addProcess(builder, processStats);
  Snapshot.finishSnapshotBuffer(builder, Snapshot.endSnapshot(builder));
  return messageOf(FROM_OPERATOR.snapshot, builder);
}

/** Builds a telemetry message. `frame` is the guard's status; `null` while the guard is silent. */
function telemetryMessage(frame: Uint8Array | null, reason = ''): ArrayBuffer {
  const builder = new Builder(512);
  const status = frame === null ? 0 : Telemetry.createStatusVector(builder, frame);
  const modeReason = builder.createString(reason);
  Telemetry.startTelemetry(builder);
  Telemetry.addStatus(builder, status);
  if (reason !== '') Telemetry.addModeReason(builder, modeReason);
  Telemetry.addSight(builder, 0b100_0001);
  Telemetry.finishTelemetryBuffer(builder, Telemetry.endTelemetry(builder));
  return messageOf(FROM_OPERATOR.telemetry, builder);
}

function messageOf(kind: number, builder: Builder): ArrayBuffer {
  const bytes = builder.asUint8Array();
  const message = new Uint8Array(1 + bytes.length);
  message[0] = kind;
  message.set(bytes, 1);
  return message.buffer;
}

function buildSession(builder: Builder, linkCount: number): number {
  const linkName = builder.createString('north 1');
  LinkStats.startLinkStats(builder);
  LinkStats.addLink(builder, 3);
  LinkStats.addName(builder, linkName);
  LinkStats.addState(builder, LinkState.Up);
  LinkStats.addDatagramBytes(builder, 1452);
  LinkStats.addSentBps(builder, 2_900_000n);
  LinkStats.addOwdOut(builder, Delays.createDelays(builder, 24, 61, 104));
  LinkStats.addLossOut(builder, 0.125);
  LinkStats.addPacketsLate(builder, 7n);
  LinkStats.addRelayed(builder, true);
  LinkStats.addDetourMs(builder, 12.5);
  const link = LinkStats.endLinkStats(builder);
  const links = SessionStats.createLinksVector(builder, Array.from({ length: linkCount }, () => link));
  const channelName = builder.createString('media');
  ChannelStats.startChannelStats(builder);
  ChannelStats.addChannel(builder, 1);
  ChannelStats.addName(builder, channelName);
  ChannelStats.addOffered(builder, 3_600n);
  const channels = SessionStats.createChannelsVector(builder, [ChannelStats.endChannelStats(builder)]);
  const named = drops(builder, 'media_expired', 5n);
  SessionStats.startRatesVector(builder, 1);
  RateControl.createRateControl(builder, 280, 35, RateCause.Policer);
  return SessionStats.createSessionStats(builder, links, channels, named, builder.endVector());
}

function buildProcess(builder: Builder): number {
  const value = Value.createValue(builder, builder.createString('battery'), 48.5, builder.createString('V'), false);
  const values = ProcessStats.createValuesVector(builder, [value]);
  return ProcessStats.createProcessStats(builder, values, drops(builder, 'camera: picture skipped', 2n));
}

function drops(builder: Builder, name: string, count: bigint): number {
  const drop = DropCount.createDropCount(builder, builder.createString(name), count);
  return SessionStats.createDropsVector(builder, [drop]);
}

describe('readTelemetry', () => {
  const MOVING = { speed: -3, steeringAngle: 0.25, throttle: 0.5, brake: 0.75, gear: Gear.Reverse };
  const KNOWN = { speedMps: -3, steeringAngleRad: 0.25, throttle: 0.5, brake: 0.75, gear: Gear.Reverse };
  const UNKNOWN = { speedMps: null, steeringAngleRad: null, throttle: null, brake: null, gear: null };
  const faultBits = (...faults: Fault[]) => bitsOf(FAULTS, faults);
  const read = (said: Said = {}) => readTelemetry(telemetryMessage(statusFrame({ ...MOVING, ...said })));

  it('copies the machine\'s motion, and what the vehicle adds', () => {
    expect(readTelemetry(telemetryMessage(statusFrame(MOVING), 'why'))).toMatchObject(
      { ...KNOWN, modeReason: 'why', faults: [], sight: ['drawn', 'unchecked'], sourceTrouble: '' });
    expect(read({ faults: faultBits('brake') })).toMatchObject({ ...KNOWN, modeReason: '', faults: ['brake'] });
  });

  it('hides the state of a machine that is too old, though its last speed is still sent', () => {
    expect(read({ machineAge: MACHINE_AGE_MAX_MS - 1 })).toMatchObject(KNOWN);
    for (const machineAge of [MACHINE_AGE_MAX_MS, 65_534]) {
      expect(read({ machineAge, faults: faultBits('drive') })).toMatchObject({ ...UNKNOWN, faults: ['unreachable', 'drive'] });
    }
    expect(read({ machineAge: 65_535 })).toMatchObject({ ...UNKNOWN, faults: ['unreachable'] });
  });

  it('hides the state of a machine that is unreachable, or whose guard is silent', () => {
    expect(read({ faults: faultBits('unreachable') })).toMatchObject({ ...UNKNOWN, faults: ['unreachable'] });
    expect(readTelemetry(telemetryMessage(null))).toMatchObject({ ...UNKNOWN, guard: null, faults: ['unreachable'] });
  });

  it('copies the reported numbers, without those of a newer version', () => {
    const told = (numbers: number[], machineAge = 20) => read({ numbers, machineAge }).told;
    const later = Array<number>(20).fill(9);
    expect(told([1.5, -0.25, 87, 300, ...later])).toEqual({ accelerationAlong: 1.5, accelerationAcross: -0.25, charge: 87 });
    expect(told([1.5, NaN])).toEqual({ accelerationAlong: 1.5, accelerationAcross: null, charge: null });
    expect(told([1.5, -0.25, 87], 301).charge).toBeNull();
  });

  it('reads a speed that the machine does not know as unknown', () => {
    expect(read({ faults: faultBits('speed') })).toMatchObject({ ...KNOWN, speedMps: null, faults: ['speed'] });
    for (const speed of [NaN, 151]) expect(read({ speed })).toMatchObject({ ...KNOWN, speedMps: null, faults: ['speed'] });
  });

  it('is malformed with a malformed status', () => {
    const frame = statusFrame();
    frame[20]! ^= 1;
    expect(() => readTelemetry(telemetryMessage(frame))).toThrow(BadMessage);
    expect(() => readTelemetry(telemetryMessage(new Uint8Array()))).toThrow(BadMessage);
  });
});

describe('readSnapshot', () => {
  it('copies what is there, and null for unknown values', () => {
    const { end, links, channels, values, drops: told } = readSnapshot(snapshotMessage());
    expect([end, links.length, channels.length]).toEqual([End.Vehicle, 1, 1]);
    const link = links[0]!;
    expect(link).toMatchObject({
      link: 3, name: 'north 1', state: LinkState.Up, datagramBytes: 1452, sentBps: 2.9e6, lossOut: 0.125, lossIn: null,
    });
    expect([link.owdOut, link.owdIn, link.rttMs]).toEqual([{ p50: 24, p95: 61, p99: 104 }, null, null]);
    expect([link.relayed, link.detourMs]).toEqual([true, 12.5]);
    expect(link.control).toEqual({ deliveredBps: 2.8e6, queueingMs: 3.5, cause: 'policer' });
    expect([link.counts.packetsLate, link.counts.packetsLost]).toEqual([7, 0]);
    expect(channels[0]).toMatchObject({ channel: 1, name: 'media', lateOrLost: null, counts: { offered: 3600, accepted: 0 } });
    expect(values).toEqual([{ name: 'battery', number: 48.5, unit: 'V', total: false }]);
    expect(told).toEqual([{ name: 'camera: picture skipped', count: 2 }, { name: 'media_expired', count: 5 }]);
  });

  it('is empty for a missing part', () => {
    const before = readSnapshot(snapshotMessage({ session: false }));
    expect([before.links, before.channels, before.values.length, before.drops.length]).toEqual([[], [], 1, 1]);
    expect(readSnapshot(snapshotMessage({ process: false })).values).toEqual([]);
  });

  it('rejects an impossible snapshot', () => {
    expect(() => readSnapshot(snapshotMessage({ linkCount: 65 }))).toThrow(BadMessage);
    expect(() => readSnapshot(snapshotMessage({ end: 9 as End }))).toThrow(BadMessage);
  });

  it('throws only errors on a message with any byte changed', () => {
    const whole = snapshotMessage();
    for (let at = 0; at < whole.byteLength; at += 1) {
      for (const value of [0x00, 0x7f, 0x80, 0xff]) {
        const message = whole.slice(0);
        new Uint8Array(message)[at] = value;
        try {
          readSnapshot(message);
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
        }
      }
    }
  });
});
