import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { LatencyView, VideoView } from '../report';
import { byId, setText } from './element';
import { UNKNOWN, ms } from './format';

const SPAN_S = 60;
// Points of one minute, at five reports a second.
const POINTS_MAX = 301;
const DRAW_MS = 500;

type Column = (number | null)[];

/** Latency from capture to canvas: figures, and a chart of the last minute. */
export class Timing {
  readonly #p50 = byId('latency-p50');
  readonly #p95 = byId('latency-p95');
  readonly #p99 = byId('latency-p99');
  readonly #worst = byId('latency-worst');
  readonly #box = byId('latency-chart');
  readonly #columns: [number[], Column, Column, Column] = [[], [], [], []];
  readonly #plot: uPlot;
  #drawnAtMs = 0;

  constructor() {
    this.#plot = new uPlot(options(this.#size()), this.#data(), this.#box);
    new ResizeObserver(() => this.#plot.setSize(this.#size())).observe(this.#box);
  }

  /** Adds a point to the chart; `null` leaves a gap. */
  observe(latency: LatencyView | null, atMs: number): void {
    const [times, p50, p95, p99] = this.#columns;
    times.push(atMs / 1000);
    p50.push(latency?.p50 ?? null);
    p95.push(latency?.p95 ?? null);
    p99.push(latency?.p99 ?? null);
    if (times.length > POINTS_MAX) for (const column of this.#columns) column.shift();
  }

  show(video: VideoView | null, atMs: number): void {
    const latency = video?.latency ?? null;
    setText(this.#p50, latency === null ? UNKNOWN : ms(latency.p50));
    setText(this.#p95, latency === null ? UNKNOWN : ms(latency.p95));
    setText(this.#p99, latency === null ? UNKNOWN : ms(latency.p99));
    setText(this.#worst, latency === null ? UNKNOWN : ms(latency.worst));
    if (atMs - this.#drawnAtMs < DRAW_MS) return;
    this.#drawnAtMs = atMs;
    this.#plot.setData(this.#data(), false);
    this.#plot.setScale('x', { min: atMs / 1000 - SPAN_S, max: atMs / 1000 });
  }

  #data(): uPlot.AlignedData {
    return this.#columns as uPlot.AlignedData;
  }

  #size(): { width: number; height: number } {
    return { width: Math.max(80, this.#box.clientWidth), height: Math.max(60, this.#box.clientHeight) };
  }
}

function options(size: { width: number; height: number }): uPlot.Options {
  const axis = { stroke: '#8494a2', font: '11px system-ui, sans-serif', grid: { stroke: '#1a232b', width: 1 }, ticks: { show: false } };
  const line = (label: string, stroke: string, fill?: string): uPlot.Series => ({
    label, stroke, width: 1.5, points: { show: false }, ...(fill === undefined ? {} : { fill }),
  });
  return {
    ...size,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, auto: false },
      y: { range: (_, __, most) => [0, Math.max(50, Math.ceil(((most ?? 0) * 1.15) / 10) * 10)] },
    },
    axes: [
      { ...axis, size: 22, values: (plot, ticks) => ticks.map((tick) => `${Math.round(tick - (plot.scales['x']?.max ?? tick))} s`),
        splits: (_, __, ____, most) => [5, 4, 3, 2, 1, 0].map((step) => most - step * 12) },
      { ...axis, size: 56, space: 26, values: (_, ticks) => ticks.map((tick) => `${tick} ms`) },
    ],
    series: [{}, line('p50', '#5fd4c0', '#5fd4c018'), line('p95', '#e9b665'), line('p99', '#f0736f')],
  };
}
