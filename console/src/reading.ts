/** Copies the FlatBuffers into plain values; throws on bytes that do not hold together. */
import { LinkState } from './message/link-state';
import type { LinkStatus } from './message/link-status';
import { Mode } from './message/mode';
import { OperatorStatus } from './message/operator-status';
import { SessionState } from './message/session-state';
import { Telemetry } from './message/telemetry';
import type { LinkView, StatusView, TelemetryView } from './report';
import { BadMessage, flatBuffer } from './wire';

// Bounds against a broken length: more is never sent.
const LINKS_MAX = 64;
const DROPS_MAX = 512;

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
    conesHit: telemetry.conesHit(),
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
