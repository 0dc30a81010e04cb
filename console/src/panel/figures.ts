import { Fault } from '../message/fault';
import { Gear } from '../message/gear';
import type { StatusView, TelemetryView, VideoView } from '../report';
import type { PictureFormat } from '../wire';
import { byId, setText } from './element';
import { UNKNOWN, count, megabits, ms, percent, quantity } from './format';
import { Rows } from './rows';
import { WindowShare } from './share';

/** Rates of the video and the share of units that missed their deadline. */
export class Figures {
  readonly #pictureRate = byId('picture-rate');
  readonly #captureRate = byId('capture-rate');
  readonly #budget = byId('video-budget');
  readonly #rate = byId('video-rate');
  readonly #lateOrLost = byId('late-or-lost');
  readonly #skipped = byId('slices-skipped');
  readonly #share = new WindowShare(10_000);

  observe(status: StatusView, atMs: number): void {
    this.#share.add(status.unitsReceived, status.unitsLate + status.unitsLost, atMs);
    const share = this.#share.share();
    setText(this.#lateOrLost, share === null ? UNKNOWN : percent(share));
    setText(this.#skipped, count(status.slicesSkipped));
  }

  showVideo(video: VideoView): void {
    setText(this.#pictureRate, video.pictureRate.toFixed(0));
    setText(this.#rate, megabits(video.bitrateBps));
  }

  showTelemetry(telemetry: TelemetryView): void {
    setText(this.#captureRate, telemetry.pictureRate.toFixed(0));
    setText(this.#budget, megabits(telemetry.videoBudgetBps));
  }
}

const FAULTS: Readonly<Record<Fault, string>> = {
  [Fault.Unreachable]: 'nothing comes back from the machine',
  [Fault.Refused]: 'the machine obeys somebody else',
  [Fault.EmergencyButton]: 'emergency button pressed',
  [Fault.Steering]: 'steering',
  [Fault.Drive]: 'drive',
  [Fault.Brake]: 'brake',
  [Fault.Gear]: 'gear',
  [Fault.Speed]: 'speed not known',
  [Fault.Other]: 'see its fault memory',
};

/** What of the machine does not work, in words. */
export function faultNames(faults: Fault[]): string {
  return faults.length === 0 ? 'none' : faults.map((fault) => FAULTS[fault]).join(', ');
}

/** What explains the figures: clocks, stamp, stages, counters. */
export class Details {
  readonly #card = byId<HTMLDetailsElement>('details');
  readonly #page = new Rows(byId('detail-rows'), 'This page');
  readonly #vehicle = new Rows(byId('detail-rows'), 'Vehicle');
  readonly #operator = new Rows(byId('detail-rows'), 'Operator');

  show(status: StatusView | null, telemetry: TelemetryView | null, video: VideoView | null): void {
    if (!this.#card.open) return;
    if (video !== null) this.#showVideo(video);
    if (telemetry !== null) this.#showVehicle(telemetry);
    if (status !== null) this.#showOperator(status);
  }

  showPicture({ width, height }: PictureFormat): void {
    this.#page.set('picture size', `${width} x ${height}`, 'picture-size');
  }

  #showVideo(video: VideoView): void {
    const { stamp, clock } = video;
    this.#page.set('stamp latency', stamp === null ? UNKNOWN : `${ms(stamp.latencyMs)} ms`, 'stamp-latency');
    this.#page.set('stamp', stamp === null ? UNKNOWN : String(stamp.value), 'stamp-value');
    this.#page.set('worst latency since opened', `${ms(video.worstEverMs)} ms`, 'latency-worst-ever');
    this.#page.set('clock against operator', clock === null ? UNKNOWN : `${ms(clock.offsetMs)} ± ${ms(clock.rttMs / 2)} ms`, 'console-clock');
    this.#page.set('strips drawn', `${video.stripRate.toFixed(0)} /s`, 'strip-rate');
    for (const { name, p50, p95, p99 } of video.stages) {
      this.#page.set(`${name}, p50 / p95 / p99`, `${p50.toFixed(1)} / ${p95.toFixed(1)} / ${p99.toFixed(1)} ms`, `stage-${name}`);
    }
    this.#page.set('draw call', `${video.drawMs.toFixed(2)} ms`, 'draw-time');
  }

  #showVehicle(telemetry: TelemetryView): void {
    this.#vehicle.set('command age', `${ms(telemetry.commandAgeMs)} ms`, 'command-age');
    this.#vehicle.set('encode p50 / p99', `${ms(telemetry.encodeMsP50)} / ${ms(telemetry.encodeMsP99)} ms`, 'encode-time');
    this.#vehicle.set('pictures captured', count(telemetry.picturesCaptured), 'pictures-captured');
    this.#vehicle.set('slices sent', count(telemetry.slicesSent), 'slices-sent');
    this.#vehicle.set('gear', telemetry.gear === Gear.Reverse ? 'reverse' : 'drive', 'machine-gear');
    this.#vehicle.set('faults', faultNames(telemetry.faults), 'faults');
    for (const { name, value, unit } of telemetry.extras) {
      this.#vehicle.set(name, quantity(value, unit), `extra-${name.replaceAll(/[^a-z0-9]+/gi, '-')}`);
    }
  }

  #showOperator(status: StatusView): void {
    const { clock } = status;
    this.#operator.set('vehicle clock', clock === null ? UNKNOWN : `${ms(clock.offsetMs)} ± ${ms(clock.errorMs)} ms`, 'vehicle-clock');
    this.#operator.set('units received', count(status.unitsReceived), 'units-received');
    this.#operator.set('units late', count(status.unitsLate), 'units-late');
    this.#operator.set('units lost', count(status.unitsLost), 'units-lost');
    this.#operator.set('slices shown', count(status.slicesShown), 'slices-shown');
    for (const link of status.links) {
      const packets = `${count(link.packetsReceived)} / ${count(link.packetsLost)} / ${count(link.packetsSent)}`;
      this.#operator.set(`${link.name}: packets received / lost / sent`, packets, `packets-${link.link}`);
    }
  }
}
