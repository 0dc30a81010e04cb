/** Decoded rows at the upper and lower end of a strip, in I420 with `ROWS` luma rows each. */
interface Edges {
  upper: Uint8Array;
  lower: Uint8Array;
}

// Luma rows that are read on either side of a seam; half as many for chroma.
const ROWS = 4;
// Outermost rows on either side that are not drawn: they only provide the chroma that a browser
// interpolates from.
const MARGIN = 2;
// Largest change of a sample, as a factor of the mean excess of the step at the seam. With 1, a
// street at 2 Mbit/s keeps steps that are 5 % too large; with 1.5 or 2, 3 %.
const EXCESS_SHARE = 1.5;
const CLIP_MAX = 8;

/**
 * Smooths the steps in the picture between strips. Each strip is a stream of its own, so no decoder
 * filters across them.
 *
 * Frames of hardware decoders are left unchanged: their rows would have to be read back from the
 * GPU.
 */
export class Seams {
  #strips: [y: number, height: number][] = [];
  /** Edges of the newest frame of each strip; undefined if they could not be read. */
  #edges: (Edges | undefined)[] = [];
  /** Count of the frames of each strip. */
  #newest: number[] = [];
  /** True for each strip whose upper seam is shown smoothed. */
  #isSmooth: boolean[] = [];

  constructor(readonly context: OffscreenCanvasRenderingContext2D) {}

  /** Sets the strips and forgets what was drawn. */
  arrange(strips: [y: number, height: number][]): void {
    this.#strips = strips;
    this.#edges = strips.map(() => undefined);
    this.#newest = strips.map(() => 0);
    this.#isSmooth = strips.map(() => false);
  }

  /**
   * Smooths both seams of a strip whose frame was just drawn. The frame may be closed before this
   * ends.
   */
  async take(frame: VideoFrame, strip: number): Promise<void> {
    const strips = this.#strips;
    const [width, height] = [frame.displayWidth, frame.displayHeight];
    this.#edges[strip] = undefined;
    const turn = (this.#newest[strip] ?? 0) + 1;
    this.#newest[strip] = turn;
    if (frame.format !== 'I420' || width !== this.context.canvas.width || width % 2 !== 0 || height < 2 * ROWS) return;
    const { colorSpace, visibleRect } = frame;
    const [x, top] = [visibleRect?.x ?? 0, visibleRect?.y ?? 0];
    const rows = async (y: number): Promise<Uint8Array> => {
      const copy = new Uint8Array((width * ROWS * 3) / 2);
      await frame.copyTo(copy, { rect: { x, y: top + y, width, height: ROWS } });
      return copy;
    };
    const [, shownHeight] = strips[strip]!;
    try {
      const [upper, lower] = await Promise.all([rows(0), rows(shownHeight - ROWS)]);
      // A newer frame has replaced this one, or the strips have changed.
      if (strips !== this.#strips || this.#newest[strip] !== turn) return;
      this.#edges[strip] = { upper, lower };
    } catch {
      // The frame is drawn, but cannot be read.
      return;
    }
    this.#smooth(strip, width, colorSpace);
    this.#smooth(strip + 1, width, colorSpace);
  }

  /**
   * Draws the smoothed rows around the top of a strip, if both sides are known. Rows that need no
   * smoothing are drawn only if they were shown smoothed before.
   */
  #smooth(strip: number, width: number, colorSpace: VideoColorSpace): void {
    const [above, below] = [this.#edges[strip - 1]?.lower, this.#edges[strip]?.upper];
    if (above === undefined || below === undefined) return;
    const wasSmooth = this.#isSmooth[strip];
    const { band, isSmoothed } = bandOf(above, below, width);
    this.#isSmooth[strip] = isSmoothed;
    if (!isSmoothed && !wasSmooth) return;
    const frame = new VideoFrame(band, { format: 'I420', codedWidth: width, codedHeight: 2 * ROWS, timestamp: 0, colorSpace });
    const [y] = this.#strips[strip]!;
    const height = 2 * (ROWS - MARGIN);
    this.context.drawImage(frame, 0, MARGIN, width, height, 0, y - height / 2, width, height);
    frame.close();
  }
}

/** Returns the rows around a seam in I420, smoothed, and whether smoothing changed them. */
export function bandOf(above: Uint8Array, below: Uint8Array, width: number): { band: Uint8Array<ArrayBuffer>; isSmoothed: boolean } {
  const band = new Uint8Array(above.length + below.length);
  let isSmoothed = false;
  let at = 0;
  for (const [planeWidth, rows] of [[width, ROWS], [width / 2, ROWS / 2], [width / 2, ROWS / 2]] as const) {
    const size = planeWidth * rows;
    const plane = band.subarray(2 * at, 2 * (at + size));
    plane.set(above.subarray(at, at + size));
    plane.set(below.subarray(at, at + size), size);
    const middle = plane.subarray(size - 2 * planeWidth, size + 2 * planeWidth);
    isSmoothed = smooth(middle, planeWidth) || isSmoothed;
    at += size;
  }
  return { band, isSmoothed };
}

/**
 * Smooths the step between the second and third of four rows of `width`, like H.264's deblocking
 * filter (8.7.2.3). Returns whether anything changed.
 *
 * The clipping value follows from the mean excess of this step over the steps next to it. So the
 * quantizer need not be known, and rows without a seam stay unchanged.
 */
function smooth(rows: Uint8Array, width: number): boolean {
  let excess = 0;
  for (let x = 0; x < width; x += 1) {
    const p1 = rows[x]!;
    const p0 = rows[x + width]!;
    const q0 = rows[x + 2 * width]!;
    const q1 = rows[x + 3 * width]!;
    excess += Math.abs(q0 - p0) - (Math.abs(p1 - p0) + Math.abs(q1 - q0)) / 2;
  }
  const clip = Math.min(Math.round((EXCESS_SHARE * excess) / width), CLIP_MAX);
  if (clip <= 0) return false;
  for (let x = 0; x < width; x += 1) {
    const p1 = rows[x]!;
    const p0 = rows[x + width]!;
    const q0 = rows[x + 2 * width]!;
    const q1 = rows[x + 3 * width]!;
    const isEdge = Math.abs(q0 - p0) >= 8 * clip || Math.abs(p1 - p0) >= 4 * clip || Math.abs(q1 - q0) >= 4 * clip;
    if (isEdge) continue;
    const change = Math.max(-clip - 1, Math.min(clip + 1, (4 * (q0 - p0) + (p1 - q1) + 4) >> 3));
    rows[x + width] = Math.max(0, Math.min(255, p0 + change));
    rows[x + 2 * width] = Math.max(0, Math.min(255, q0 - change));
  }
  return true;
}
