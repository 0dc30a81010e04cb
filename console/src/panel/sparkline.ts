export interface Point {
  /** Received rate, drawn as an area. */
  rateBps: number;
  /** One-way delay, drawn as a line; `null` leaves a gap. */
  owdMs: number | null;
}

const POINTS = 60;
// Lower limits of the scales, so that an idle link does not magnify its noise.
const RATE_FLOOR_BPS = 500_000;
const OWD_FLOOR_MS = 60;

/** Received rate and one-way delay of a link over 30 s. */
export class Sparkline {
  readonly #points: Point[] = [];

  constructor(readonly canvas: HTMLCanvasElement) {}

  push(point: Point): void {
    this.#points.push(point);
    if (this.#points.length > POINTS) this.#points.shift();
  }

  /**
   * Draws the points. The scales end at these largest values of all links, so that links can be
   * compared.
   */
  draw(rateMaxBps: number, owdMaxMs: number): void {
    const scale = window.devicePixelRatio;
    const { canvas } = this;
    const style = getComputedStyle(canvas);
    const width = Math.round((canvas.clientWidth - parseFloat(style.paddingLeft)) * scale);
    const height = Math.round(canvas.clientHeight * scale);
    if (width <= 0 || height <= 0) return;
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    const context = canvas.getContext('2d');
    if (context === null) return;
    context.clearRect(0, 0, width, height);
    const x = (index: number): number => ((index + POINTS - this.#points.length) / (POINTS - 1)) * width;
    const y = (share: number): number => height - 1 - Math.min(1, share) * (height - 3);
    this.#area(context, x, (point) => y(point.rateBps / Math.max(RATE_FLOOR_BPS, rateMaxBps)), height);
    this.#line(context, x, (owdMs) => y(owdMs / Math.max(OWD_FLOOR_MS, owdMaxMs)), scale);
  }

  /** Largest rate and delay of the points; 0 without any. */
  get most(): { rateBps: number; owdMs: number } {
    return {
      rateBps: Math.max(0, ...this.#points.map((point) => point.rateBps)),
      owdMs: Math.max(0, ...this.#points.map((point) => point.owdMs ?? 0)),
    };
  }

  #area(
    context: CanvasRenderingContext2D, x: (index: number) => number, y: (point: Point) => number, height: number,
  ): void {
    if (this.#points.length === 0) return;
    context.beginPath();
    context.moveTo(x(0), height);
    this.#points.forEach((point, index) => context.lineTo(x(index), y(point)));
    context.lineTo(x(this.#points.length - 1), height);
    context.fillStyle = '#5fd4c038';
    context.fill();
  }

  #line(
    context: CanvasRenderingContext2D, x: (index: number) => number, y: (owdMs: number) => number, scale: number,
  ): void {
    context.beginPath();
    let gap = true;
    this.#points.forEach((point, index) => {
      if (point.owdMs === null) {
        gap = true;
      } else {
        if (gap) context.moveTo(x(index), y(point.owdMs));
        else context.lineTo(x(index), y(point.owdMs));
        gap = false;
      }
    });
    context.lineWidth = 1.2 * scale;
    context.strokeStyle = '#e9b665';
    context.stroke();
  }
}
