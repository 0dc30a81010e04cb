import type { PictureFormat } from '../wire';

/** A windscreen's picture, before the vehicle's own is known: its strips are a sixth as high. */
const USUAL = { codec: 'avc1.42c01f', width: 1280, height: 120 };

/** Whether this browser decodes such strips by hardware; null: it does not say. */
export async function decodesByHardware(
  picture: PictureFormat | null, decoder: Pick<typeof VideoDecoder, 'isConfigSupported'> | undefined,
): Promise<boolean | null> {
  if (decoder === undefined) return null;
  const { codec, width, height } = picture === null ? USUAL : { ...picture, height: picture.strips[0]![1] };
  const config: VideoDecoderConfig = { codec, codedWidth: width, codedHeight: height, optimizeForLatency: true };
  try {
    // One that cannot decode it at all says nothing of its hardware.
    if ((await decoder.isConfigSupported(config)).supported !== true) return null;
    return (await decoder.isConfigSupported({ ...config, hardwareAcceleration: 'prefer-hardware' })).supported === true;
  } catch {
    return null;
  }
}
