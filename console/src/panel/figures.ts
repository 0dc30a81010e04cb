import type { StatusView, TelemetryView, VideoView } from '../report';
import { byId, make, setData, setText } from './element';
import { UNKNOWN, count, megabits, ms, percent } from './format';
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

/** Named rows of text; made once a name, then only rewritten. */
class Rows {
  readonly #values = new Map<string, { row: HTMLElement; value: HTMLElement }>();

  constructor(readonly box: HTMLElement) {}

  heading(text: string): void {
    if (!this.#values.has(text)) {
      const row = make('h3', {}, text);
      this.#values.set(text, { row, value: row });
      this.box.append(row);
    }
  }

  set(name: string, value: string, testId: string): void {
    let entry = this.#values.get(testId);
    if (entry === undefined) {
      const text = make('b', { id: testId, 'data-testid': testId });
      entry = { row: make('div', {}, make('span', {}, name), text), value: text };
      this.#values.set(testId, entry);
      this.box.append(entry.row);
    }
    setData(entry.row, 'zero', String(value === '0'));
    setText(entry.value, value);
  }
}

/** Every named drop, of the operator's process and of this page, and the vehicle's two. */
export class Drops {
  readonly #rows = new Rows(byId('drop-rows'));
  readonly #total = byId('drops-total');

  show(status: StatusView | null, telemetry: TelemetryView | null, video: VideoView | null): void {
    const vehicle = telemetry === null ? [] : [
      { name: 'pictures', count: telemetry.picturesDropped }, { name: 'slices', count: telemetry.slicesDropped }];
    const groups: [string, { name: string; count: number }[]][] = [
      ['vehicle', vehicle], ['console', video?.drops ?? []], ['operator', status?.drops ?? []]];
    let total = 0;
    for (const [group, drops] of groups) {
      for (const drop of drops) {
        total += drop.count;
        this.#rows.set(`${group}: ${drop.name}`, count(drop.count), `drop-${group}-${slug(drop.name)}`);
      }
    }
    setText(this.#total, count(total));
  }
}

/** What explains the figures: clocks, stamp, stages, counters. */
export class Details {
  readonly #rows = new Rows(byId('detail-rows'));

  show(status: StatusView | null, telemetry: TelemetryView | null, video: VideoView | null): void {
    if (video !== null) this.#video(video);
    if (telemetry !== null) this.#vehicle(telemetry);
    if (status !== null) this.#operator(status);
  }

  #video(video: VideoView): void {
    const { stamp, clock } = video;
    this.#rows.heading('this page');
    this.#rows.set('stamp latency', stamp === null ? UNKNOWN : `${ms(stamp.latencyMs)} ms`, 'stamp-latency');
    this.#rows.set('stamp', stamp === null ? UNKNOWN : String(stamp.value), 'stamp-value');
    this.#rows.set('worst latency since opened', `${ms(video.worstEverMs)} ms`, 'latency-worst-ever');
    this.#rows.set('clock against operator', clock === null ? UNKNOWN : `${ms(clock.offsetMs)} ± ${ms(clock.rttMs / 2)} ms`, 'console-clock');
    this.#rows.set('strips drawn', `${video.stripRate.toFixed(0)} /s`, 'strip-rate');
    this.#rows.set('draw call', `${video.drawMs.toFixed(2)} ms`, 'draw-time');
  }

  #vehicle(telemetry: TelemetryView): void {
    this.#rows.heading('vehicle');
    this.#rows.set('command age', `${ms(telemetry.commandAgeMs)} ms`, 'command-age');
    this.#rows.set('encode p50 / p99', `${ms(telemetry.encodeMsP50)} / ${ms(telemetry.encodeMsP99)} ms`, 'encode-time');
    this.#rows.set('pictures captured', count(telemetry.picturesCaptured), 'pictures-captured');
    this.#rows.set('slices sent', count(telemetry.slicesSent), 'slices-sent');
    this.#rows.set('cones hit', count(telemetry.conesHit), 'cones-hit');
  }

  #operator(status: StatusView): void {
    const { clock } = status;
    this.#rows.heading('operator');
    this.#rows.set('vehicle clock', clock === null ? UNKNOWN : `${ms(clock.offsetMs)} ± ${ms(clock.errorMs)} ms`, 'vehicle-clock');
    this.#rows.set('units received', count(status.unitsReceived), 'units-received');
    this.#rows.set('units late', count(status.unitsLate), 'units-late');
    this.#rows.set('units lost', count(status.unitsLost), 'units-lost');
    this.#rows.set('slices shown', count(status.slicesShown), 'slices-shown');
    for (const link of status.links) {
      const packets = `${count(link.packetsReceived)} / ${count(link.packetsLost)} / ${count(link.packetsSent)}`;
      this.#rows.set(`${link.name}: packets received / lost / sent`, packets, `packets-${link.link}`);
    }
  }
}

function slug(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}
