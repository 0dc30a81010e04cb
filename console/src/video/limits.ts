import type { PictureFormat } from '../wire';

/**
 * Pixels of the largest picture of H.264 level 5.1, such as 4096x2304. No operator's screen shows
 * more.
 */
export const PIXELS_MAX = 36_864 * 256;
/**
 * Sizes of pictures that the browser is asked about, largest first, and whether only hardware
 * decodes them in time.
 */
const SIZES: readonly [width: number, height: number, hardware: boolean][] = [
  [4096, 2304, true], [3840, 2160, true], [2560, 1440, true], [1920, 1080, false], [1280, 720, false]];
/** H.264 at level 5.1, which covers all of these sizes. */
const CODEC = 'avc1.42c033';
const STRIPS = 6;

/** Returns the largest picture, in pixels, that this browser shows in time; `null` if unknown. */
export async function pixelsShown(decoder: Pick<typeof VideoDecoder, 'isConfigSupported'> | undefined): Promise<number | null> {
  if (decoder === undefined) return null;
  try {
    for (const [width, height, hardware] of SIZES) {
      const config: VideoDecoderConfig = {
        codec: CODEC, codedWidth: width, codedHeight: Math.ceil(height / STRIPS / 16) * 16, optimizeForLatency: true,
        ...(hardware ? { hardwareAcceleration: 'prefer-hardware' as const } : {}),
      };
      if ((await decoder.isConfigSupported(config)).supported === true) return width * height;
    }
  } catch {
    // A failed query gives no information.
  }
  return null;
}

/**
 * Returns why a picture is not shown: it is so large that its decoders and canvas would block this
 * page for seconds. `null` if it is shown.
 */
export function refusalOf({ width, height }: PictureFormat): string | null {
  if (width * height <= PIXELS_MAX) return null;
  return `The vehicle sends pictures of ${width}x${height}, more than this page can show. Choose a smaller camera_mode on the vehicle, or update it.`;
}
