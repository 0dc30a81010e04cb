/** Copies the FlatBuffers into plain values; throws on bytes that do not hold together. */
import type { ClassSurvey } from './message/class-survey';
import type { Delays } from './message/delays';
import { End } from './message/end';
import { Fault } from './message/fault';
import { Gear } from './message/gear';
import { LinkState } from './message/link-state';
import type { LinkStatus } from './message/link-status';
import type { LinkSurvey } from './message/link-survey';
import { Mode } from './message/mode';
import { OperatorStatus } from './message/operator-status';
import { SessionState } from './message/session-state';
import { Survey } from './message/survey';
import { Telemetry } from './message/telemetry';
import { UnitClass } from './message/unit-class';
import type {
  ClassSurveyView, DelaysView, LinkSurveyView, LinkView, StatusView, SurveyView, TelemetryView,
} from './report';
import { BadMessage, flatBuffer } from './wire';

// Bounds against a broken length: more is never sent.
const LINKS_MAX = 64;
const DROPS_MAX = 512;
const CLASSES_MAX = 2;
const FAULTS_MAX = 9;
const EXTRAS_MAX = 16;

export function readTelemetry(message: ArrayBuffer): TelemetryView {
  const telemetry = Telemetry.getRootAsTelemetry(flatBuffer(message, Telemetry.bufferHasIdentifier));
  const motion = telemetry.motion();
  if (motion === null) throw new BadMessage('telemetry without motion');
  return {
    sequence: Number(telemetry.sequence()),
    speedMps: finite(motion.speed()),
    steeringAngleRad: finite(motion.steeringAngle()),
    throttle: finite(motion.throttle()),
    brake: finite(motion.brake()),
    mode: known(Mode, telemetry.mode()),
    modeReason: telemetry.modeReason() ?? '',
    commandAgeMs: orUnknown(telemetry.commandAgeMs()),
    pictureRate: finite(telemetry.pictureRate()),
    videoBudgetBps: Number(telemetry.videoBudgetBps()),
    picturesCaptured: Number(telemetry.picturesCaptured()),
    picturesDropped: Number(telemetry.picturesDropped()),
    slicesSent: Number(telemetry.slicesSent()),
    slicesDropped: Number(telemetry.slicesDropped()),
    encodeMsP50: finite(telemetry.encodeMsP50()),
    encodeMsP99: finite(telemetry.encodeMsP99()),
    links: list(telemetry.linksLength(), LINKS_MAX, (index) => readLink(telemetry.links(index))),
    gear: known(Gear, telemetry.gear()),
    faults: list(telemetry.faultsLength(), FAULTS_MAX, (index) => {
      const fault = telemetry.faults(index) ?? Fault.Other;
      return fault in Fault ? fault : Fault.Other;
    }),
    extras: list(telemetry.extrasLength(), EXTRAS_MAX, (index) => {
      const extra = present(telemetry.extras(index));
      return { name: extra.name() ?? '', value: finite(extra.value()), unit: extra.unit() ?? '' };
    }),
  };
}

export function readStatus(message: ArrayBuffer): StatusView {
  const status = OperatorStatus.getRootAsOperatorStatus(
    flatBuffer(message, OperatorStatus.bufferHasIdentifier));
  const clock = status.clock();
  return {
    vehicleName: status.vehicleName() ?? '',
    sessionState: known(SessionState, status.sessionState()),
    sessionReason: status.sessionReason() ?? '',
    links: list(status.linksLength(), LINKS_MAX, (index) => readLink(status.links(index))),
    unitsReceived: Number(status.unitsReceived()),
    unitsLate: Number(status.unitsLate()),
    unitsLost: Number(status.unitsLost()),
    slicesShown: Number(status.slicesShown()),
    slicesSkipped: Number(status.slicesSkipped()),
    clock: clock === null ? null : {
      offsetMs: Number(clock.offsetNs()) / 1e6,
      errorMs: Number(clock.errorNs()) / 1e6,
    },
    drops: list(status.dropsLength(), DROPS_MAX, (index) => {
      const drop = present(status.drops(index));
      return { name: drop.name() ?? '', count: Number(drop.count()) };
    }),
    emulatedLinks: list(status.emulatedLinksLength(), LINKS_MAX, (index) => {
      const link = present(status.emulatedLinks(index));
      return { name: link.name() ?? '', cut: link.cut() };
    }),
  };
}

export function readSurvey(message: ArrayBuffer): SurveyView {
  const survey = Survey.getRootAsSurvey(flatBuffer(message, Survey.bufferHasIdentifier));
  return {
    end: known(End, survey.end()),
    links: list(survey.linksLength(), LINKS_MAX, (index) => readLinkSurvey(survey.links(index))),
    classes: list(survey.classesLength(), CLASSES_MAX, (index) => readClassSurvey(survey.classes(index))),
  };
}

function readLinkSurvey(survey: LinkSurvey | null): LinkSurveyView {
  const link = present(survey);
  return {
    link: link.link(),
    state: known(LinkState, link.state()),
    datagramBytes: link.datagramBytes(),
    budgetBps: Number(link.budgetBps()),
    grantedBps: Number(link.grantedBps()),
    sentBps: Number(link.sentBps()),
    incomingBps: Number(link.incomingBps()),
    rttMs: orUnknown(link.rttMs()),
    owdOut: readDelays(link.owdOut()),
    owdIn: readDelays(link.owdIn()),
    lossOut: finite(link.lossOut()),
    lossIn: finite(link.lossIn()),
    queuedBytes: link.queuedBytes(),
    inFlightBytes: link.inFlightBytes(),
    datagramsSent: Number(link.datagramsSent()),
    datagramsReceived: Number(link.datagramsReceived()),
    packets: {
      given: Number(link.packetsGiven()),
      again: Number(link.packetsAgain()),
      dropped: Number(link.packetsDropped()),
      withdrawn: Number(link.packetsWithdrawn()),
      sent: Number(link.packetsSent()),
      inTime: Number(link.packetsInTime()),
      late: Number(link.packetsLate()),
      lost: Number(link.packetsLost()),
    },
  };
}

function readDelays(delays: Delays | null): DelaysView | null {
  if (delays === null) return null;
  return { p50: finite(delays.p50()), p95: finite(delays.p95()), p99: finite(delays.p99()) };
}

function readClassSurvey(survey: ClassSurvey | null): ClassSurveyView {
  const units = present(survey);
  return {
    class: known(UnitClass, units.unitClass()),
    units: {
      offered: Number(units.offered()),
      accepted: Number(units.accepted()),
      refusedNoLink: Number(units.refusedNoLink()),
      refusedInvalid: Number(units.refusedInvalid()),
      refusedCongested: Number(units.refusedCongested()),
      heard: Number(units.heard()),
      delivered: Number(units.delivered()),
      repaired: Number(units.repaired()),
      missing: Number(units.missing()),
      incomplete: Number(units.incomplete()),
      late: Number(units.late()),
      evicted: Number(units.evicted()),
      malformed: Number(units.malformed()),
      superseded: Number(units.superseded()),
    },
  };
}

function readLink(status: LinkStatus | null): LinkView {
  const link = present(status);
  return {
    link: link.link(),
    name: link.name() ?? '',
    state: known(LinkState, link.state()),
    sendRateBps: Number(link.sendRateBps()),
    receivedRateBps: Number(link.receivedRateBps()),
    rttMs: orUnknown(link.rttMs()),
    owdMs: orUnknown(link.owdMs()),
    jitterMs: orUnknown(link.jitterMs()),
    loss: finite(link.loss()),
    packetsSent: Number(link.packetsSent()),
    packetsReceived: Number(link.packetsReceived()),
    packetsLost: Number(link.packetsLost()),
  };
}

function list<T>(length: number, bound: number, read: (index: number) => T): T[] {
  if (length > bound) throw new BadMessage(`vector of ${length}`);
  return Array.from({ length }, (_, index) => read(index));
}

function present<T>(value: T | null): T {
  if (value === null) throw new BadMessage('missing table');
  return value;
}

function finite(value: number): number {
  if (!Number.isFinite(value)) throw new BadMessage('number is not finite');
  return value;
}

function orUnknown(value: number): number | null {
  return finite(value) < 0 ? null : value;
}

function known<E extends number>(names: Record<number, string>, value: E): E {
  if (!(value in names)) throw new BadMessage(`enum value ${value}`);
  return value;
}
