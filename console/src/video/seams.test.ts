import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { bandOf, Seams } from './seams';

const WIDTH = 64;

/** Returns four luma rows and their chroma: one value per row, with noise of this amplitude. */
function rows(values: number[], noise = 0): Uint8Array {
  const noisy = (value: number, x: number) => value + ((x * 7919) % 13) / 6.5 * noise - noise;
  const luma = values.flatMap((value) => Array.from({ length: WIDTH }, (_, x) => noisy(value, x)));
  return new Uint8Array([...luma, ...Array<number>(2 * WIDTH).fill(128)]);
}

const row = (band: Uint8Array, y: number): number[] => [...band.subarray(y * WIDTH, (y + 1) * WIDTH)];

describe('a band around a seam', () => {
  it('steps evenly across a seam', () => {
    const { band } = bandOf(rows([100, 100, 100, 100], 1), rows([108, 108, 108, 108], 1), WIDTH);
    // The three steps nearest to the seam become 3, 2 and 3 instead of 0, 8 and 0. Those next to
    // them stay.
    for (let x = 0; x < WIDTH; x += 1) {
      const [p1, p0, q0, q1] = [2, 3, 4, 5].map((y) => row(band, y)[x]!) as [number, number, number, number];
      expect([p0 - p1, q0 - p0, q1 - q0]).toEqual([3, 2, 3]);
    }
    expect(row(band, 2)).toEqual([...rows([100], 1).subarray(0, WIDTH)]);
  });

  it('keeps an edge of the picture', () => {
    expect(row(bandOf(rows([50, 50, 50, 50]), rows([200, 200, 200, 200]), WIDTH).band, 3)).toEqual(Array(WIDTH).fill(50));
  });

  it('stays as decoded if the step is like those next to it', () => {
    expect(bandOf(rows([90, 92, 94, 96]), rows([98, 100, 102, 104]), WIDTH).isSmoothed).toBe(false);
    expect(bandOf(rows([90, 90, 90, 90], 3), rows([90, 90, 90, 90], 3), WIDTH).isSmoothed).toBe(false);
  });

  it('treats chroma the same way', () => {
    const above = rows([100, 100, 100, 100]);
    const below = above.slice();
    below.fill(136, 4 * WIDTH, 5 * WIDTH);
    const { band } = bandOf(above, below, WIDTH);
    const chroma = [0, 1, 2, 3].map((y) => band[8 * WIDTH + y * WIDTH / 2]);
    expect(chroma).toEqual([128, 131, 133, 136]);
    expect(band.subarray(0, 4 * WIDTH)).toEqual(above.subarray(0, 4 * WIDTH));
  });
});

describe('the seams of a picture', () => {
  const drawn: number[][] = [];
  let seams: Seams;

  beforeEach(() => {
    drawn.length = 0;
    vi.stubGlobal('VideoFrame', class {
      close(): void { /* Nothing to release. */ }
    });
    const context = { canvas: { width: WIDTH }, drawImage: (_: unknown, ...place: number[]) => drawn.push(place) };
    seams = new Seams(context as unknown as OffscreenCanvasRenderingContext2D);
    seams.arrange([[0, 16], [16, 16], [32, 16]]);
  });
  afterEach(() => vi.unstubAllGlobals());

  /** Returns a strip's frame of one grey, whose rows can be read once `read` has resolved. */
  function frame(grey: number, format = 'I420', read = Promise.resolve()): VideoFrame {
    const copyTo = async (copy: Uint8Array) => {
      await read;
      copy.fill(128).fill(grey, 0, 4 * WIDTH);
    };
    return { format, displayWidth: WIDTH, displayHeight: 16, visibleRect: null, copyTo } as unknown as VideoFrame;
  }

  it('are drawn again with each adjacent strip', async () => {
    await seams.take(frame(100), 0);
    expect(drawn).toEqual([]);
    await seams.take(frame(108), 1);
    expect(drawn).toEqual([[0, 2, WIDTH, 4, 0, 14, WIDTH, 4]]);
    await seams.take(frame(100), 2);
    expect(drawn.slice(1)).toEqual([[0, 2, WIDTH, 4, 0, 30, WIDTH, 4]]);
    // The rows smoothed with the strip's previous frame are drawn once more, unsmoothed. After
    // that, nothing is left to draw.
    await seams.take(frame(100), 1);
    expect(drawn.length).toBe(4);
    await seams.take(frame(100), 1);
    expect(drawn.length).toBe(4);
  });

  it('are not smoothed with rows that are no longer shown', async () => {
    await seams.take(frame(100), 0);
    let come = () => {};
    const late = seams.take(frame(108, 'I420', new Promise((resolve) => { come = resolve; })), 1);
    await seams.take(frame(108, 'NV12'), 1);
    come();
    await late;
    await seams.take(frame(101), 0);
    expect(drawn).toEqual([]);
  });

  it('stay if rows cannot be read', async () => {
    await seams.take(frame(100), 0);
    await seams.take(frame(108, 'I420', Promise.reject(new Error('closed'))), 1);
    expect(drawn).toEqual([]);
  });
});
