import type { PictureFormat } from '../wire';

/** Typical strip, assumed before the vehicle's picture format is known: a sixth of 1280x720. */
const USUAL = { codec: 'avc1.42c01f', width: 1280, height: 120 };

/**
 * Returns whether this browser decodes the strips of `picture` in hardware, or those of a typical
 * picture if it is `null`; `null` if unknown.
 */
export async function decodesByHardware(
  picture: PictureFormat | null, decoder: Pick<typeof VideoDecoder, 'isConfigSupported'> | undefined,
): Promise<boolean | null> {
  if (decoder === undefined) return null;
  const { codec, width, height } = picture === null ? USUAL : { ...picture, height: picture.strips[0]![1] };
  const config: VideoDecoderConfig = { codec, codedWidth: width, codedHeight: height, optimizeForLatency: true };
  try {
    // A browser that cannot decode it at all gives no information about its hardware.
    if ((await decoder.isConfigSupported(config)).supported !== true) return null;
    return (await decoder.isConfigSupported({ ...config, hardwareAcceleration: 'prefer-hardware' })).supported === true;
  } catch {
    return null;
  }
}
