import { STAMP_HEIGHT, STAMP_WIDTH, readStamp } from '../stamp';
import type { PictureFormat } from '../wire';
import { Seams } from './seams';

/** The canvas, on which strips are drawn as they arrive. */
export class Screen {
  readonly #context: OffscreenCanvasRenderingContext2D;
  /**
   * A separate canvas to read the stamp from: reading back from the picture would make the browser
   * draw it in software from then on.
   */
  readonly #stamp: OffscreenCanvasRenderingContext2D;
  readonly #seams: Seams;
  #strips: [y: number, height: number][] = [];

  constructor(readonly canvas: OffscreenCanvas) {
    this.#context = context(canvas, { alpha: false, desynchronized: hasGraphicsProcessor() });
    this.#seams = new Seams(this.#context);
    this.#stamp = context(new OffscreenCanvas(STAMP_WIDTH, STAMP_HEIGHT), { alpha: false, willReadFrequently: true });
  }

  /** Sets the picture's size and keeps its content, scaled if the size changes. */
  arrange({ width, height, strips }: PictureFormat): void {
    this.#strips = strips;
    this.#seams.arrange(strips);
    const { width: widthBefore, height: heightBefore } = this.canvas;
    if (widthBefore === width && heightBefore === height) return;
    const before = new OffscreenCanvas(Math.max(widthBefore, 1), Math.max(heightBefore, 1));
    const copy = context(before, { alpha: false });
    if (widthBefore > 0 && heightBefore > 0) copy.drawImage(this.canvas, 0, 0);
    this.canvas.width = width;
    this.canvas.height = height;
    this.#context.drawImage(before, 0, 0, width, height);
  }

  /**
   * True if the canvas is lost, for example with the browser's GPU process. Drawing then silently
   * does nothing.
   */
  get isLost(): boolean {
    // Some browsers cannot report it.
    return this.#context.isContextLost?.() === true;
  }

  /** Draws the visible part of a strip's frame at the strip's rows. */
  draw(frame: VideoFrame, strip: number): void {
    const rows = this.#strips[strip];
    if (rows === undefined) return;
    const [y, height] = rows;
    const width = this.canvas.width;
    // drawImage uses coordinates within the visible rectangle. The source sizes leave out padding.
    const sourceWidth = Math.min(frame.displayWidth, width);
    const sourceHeight = Math.min(frame.displayHeight, height);
    this.#context.drawImage(frame, 0, 0, sourceWidth, sourceHeight, 0, y, width, height);
    void this.#seams.take(frame, strip);
  }

  /** Reads the stamp from a frame of the first strip; `null` if it has none. */
  stampOf(frame: VideoFrame): number | null {
    if (frame.displayWidth < STAMP_WIDTH || frame.displayHeight < STAMP_HEIGHT) return null;
    this.#stamp.drawImage(frame, 0, 0, STAMP_WIDTH, STAMP_HEIGHT, 0, 0, STAMP_WIDTH, STAMP_HEIGHT);
    return readStamp(this.#stamp.getImageData(0, 0, STAMP_WIDTH, STAMP_HEIGHT).data, STAMP_WIDTH);
  }
}

function context(canvas: OffscreenCanvas, settings: CanvasRenderingContext2DSettings): OffscreenCanvasRenderingContext2D {
  const made = canvas.getContext('2d', settings);
  if (made === null) throw new Error('this browser gives no 2d canvas context');
  return made;
}

/**
 * Returns whether the browser draws with a GPU. Without one, a desynchronized canvas is copied as a
 * whole with each picture, which costs 50 % more and gains nothing.
 */
function hasGraphicsProcessor(): boolean {
  return new OffscreenCanvas(1, 1).getContext('webgl', { failIfMajorPerformanceCaveat: true }) !== null;
}
