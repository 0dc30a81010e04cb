//! Minimum performance of Tautline's codes on a CPU with GFNI.

use crate::block::Shape;

/// Returns the minimum ratio of encoding speed to ISA-L's for blocks of 100 packets; `None` for
/// another size than 1296 bytes, and for numbers of repair packets without a bar.
pub(crate) fn encode_to_isal(shape: Shape) -> Option<f64> {
    let bars = [(1, 1.6), (10, 4.0), (20, 4.0), (30, 4.2), (40, 5.5), (50, 6.1)];
    let bar = bars.into_iter().find(|&(count, _)| count == shape.repairs);
    bar.filter(|_| shape.packet_bytes == PACKET_BYTES).map(|(_, bar)| bar)
}

/// Returns the minimum ratio of decoding speed to the best crate's on the same blocks; `None`
/// unless 10 to 30 packets of 1296 bytes are lost.
pub(crate) fn decode_to_crates(shape: Shape) -> Option<f64> {
    let holds = (10..=30).contains(&shape.repairs) && shape.packet_bytes == PACKET_BYTES;
    holds.then_some(2.2)
}

const PACKET_BYTES: usize = 1296;

/// Minimum ratio to any peer's speed: never slower.
pub(crate) const TO_ANY_PEER: Option<f64> = Some(1.0);

/// Minimum share of the CPU's multiply-and-add ceiling that encoding reaches at M=10.
pub(crate) const SHARE_OF_CEILING: f64 = 0.9;

/// Block sizes of slices: source packets, repair packets, and the maximum decoding time in
/// microseconds at 4 GHz on a CPU that does two 512-bit affines per cycle.
pub(crate) const SLICES: [(usize, usize, f64); 4] =
    [(8, 6, 0.5), (16, 12, 1.3), (32, 8, 1.3), (32, 32, 7.0)];

/// Maximum microseconds to encode and to decode a source packet of a stream on the same CPU, in the
/// order of the settings.
pub(crate) const STREAMS: [(f64, f64); 3] = [(0.094, 0.27), (0.16, 0.30), (0.32, 0.53)];

/// Minimum speed of a stream, in Mbit/s of source: 20 times the 800 of [STREAM].
pub(crate) const STREAM_MBIT_PER_SECOND: f64 = 20.0 * 800.0;
