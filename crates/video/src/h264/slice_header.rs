//! Slice headers (7.3.3): the fields that concealment reads, and the skip slice that it writes.

use super::bits::{Reader, Writer};
use super::nal::{self, NalUnit};
use super::parameters::{PictureOrder, PictureParameters, Sequence};
use crate::{Error, Motion};

/// Number of bytes at the start of a slice NAL unit that always contain the fields read here: at
/// most 8 numbers of at most 63 bits each, with emulation prevention.
pub(crate) const START_BYTES: usize = 128;

/// First fields of a slice header, with the positions of some.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SliceHeader {
    pub(crate) first_macroblock: u32,
    /// True for a P slice, false for an I slice.
    pub(crate) predicted: bool,
    pub(crate) picture_parameters_id: u32,
    /// Value of `frame_num`.
    pub(crate) frame_number: u32,
    /// Bit position of frame_num in the payload.
    pub(crate) frame_number_position: usize,
    /// Value of `pic_order_cnt_lsb` and its bit position; `None` if the order is not of type 0.
    pub(crate) order: Option<(u32, usize)>,
    /// Bit position after the fields above.
    pub(crate) end_position: usize,
}

impl SliceHeader {
    /// Returns the id of the picture parameter set to which the slice refers.
    pub(crate) fn parameters_id(payload: &[u8]) -> Result<u32, Error> {
        let mut reader = Reader::new(payload, "slice header");
        reader.unsigned()?;
        reader.unsigned()?;
        reader.at_most(255, "pic_parameter_set_id")
    }

    /// Parses the start of a slice's payload.
    ///
    /// # Errors
    /// Fails if it is truncated, out of range, or belongs to a B or switching slice, or to an IDR
    /// with a P slice or a frame number other than 0.
    pub(crate) fn parse(payload: &[u8], nal_kind: u8, sequence: &Sequence) -> Result<Self, Error> {
        let mut reader = Reader::new(payload, "slice header");
        let first_macroblock =
            reader.at_most(sequence.macroblock_count - 1, "first_mb_in_slice")?;
        let predicted = match reader.at_most(9, "slice_type")? % 5 {
            0 => true,
            2 => false,
            _ => return Err(Error::Unsupported { what: "a B or switching slice" }),
        };
        let picture_parameters_id = reader.at_most(255, "pic_parameter_set_id")?;
        let frame_number_position = reader.position();
        let frame_number = reader.bits(sequence.frame_number_bits)?;
        if nal_kind == nal::kind::IDR_SLICE {
            if predicted || frame_number != 0 {
                return Err(Error::Invalid { what: "IDR", value: u64::from(frame_number) });
            }
            reader.at_most(65535, "idr_pic_id")?;
        }
        let order = match sequence.order {
            PictureOrder::LowBits(bits) => {
                let position = reader.position();
                Some((reader.bits(bits)?, position))
            }
            PictureOrder::Differences { .. } | PictureOrder::Decoding => None,
        };
        Ok(Self {
            first_macroblock,
            predicted,
            picture_parameters_id,
            frame_number,
            frame_number_position,
            order,
            end_position: reader.position(),
        })
    }
}

/// Returns a skip slice as a NAL unit: it repeats the complete previous picture, shifted by
/// `motion`.
///
/// Without motion every macroblock is skipped: the prediction of 8.4.1.1 is zero where a neighbour
/// is missing or has a zero vector, so by induction everywhere. With motion, macroblocks that lack
/// a neighbour, at the top and the left, are coded as predicted with the vector of their left or
/// upper neighbour; the first one's vector is written. The others, whose neighbours all have the
/// same vector, are skipped. Deblocking is off, so the repetition is exact.
pub(crate) fn write_skip(
    nal_reference: u8,
    frame_number: u32,
    order_low_bits: u32,
    sequence: &Sequence,
    picture: &PictureParameters,
    motion: Motion,
) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.unsigned(0); // first_mb_in_slice
    writer.unsigned(SLICE_TYPE_ALL_P);
    writer.unsigned(picture.id);
    writer.bits(frame_number, sequence.frame_number_bits);
    match sequence.order {
        PictureOrder::LowBits(bits) => {
            writer.bits(order_low_bits, bits);
            if picture.bottom_order_present {
                writer.signed(0); // delta_pic_order_cnt_bottom
            }
        }
        PictureOrder::Differences { always_zero: false } => {
            writer.signed(0); // delta_pic_order_cnt[0]
            if picture.bottom_order_present {
                writer.signed(0); // delta_pic_order_cnt[1]
            }
        }
        PictureOrder::Differences { always_zero: true } | PictureOrder::Decoding => {}
    }
    if picture.redundant_count_present {
        writer.unsigned(0); // redundant_pic_cnt
    }
    let one_reference = picture.reference_count == 1;
    writer.bit(!one_reference); // num_ref_idx_active_override_flag
    if !one_reference {
        writer.unsigned(0); // num_ref_idx_l0_active_minus1
    }
    writer.bit(false); // ref_pic_list_modification_flag_l0
    if picture.weighted {
        writer.unsigned(0); // luma_log2_weight_denom
        writer.unsigned(0); // chroma_log2_weight_denom
        writer.bit(false); // luma_weight_l0_flag
        writer.bit(false); // chroma_weight_l0_flag
    }
    if nal_reference != 0 {
        writer.bit(false); // adaptive_ref_pic_marking_mode_flag
    }
    writer.signed(0); // slice_qp_delta
    if picture.deblocking_control {
        writer.unsigned(1); // disable_deblocking_filter_idc
    }
    if motion == Motion::default() {
        writer.unsigned(sequence.macroblock_count); // mb_skip_run
    } else {
        write_moved(sequence, motion.within_levels(), &mut writer);
    }
    let mut out = Vec::with_capacity(24);
    nal::write(nal_reference << 5 | nal::kind::SLICE, &writer.finish(), &mut out);
    out
}

/// Writes all macroblocks of a slice, predicted with one vector and without residual (7.3.5).
fn write_moved(sequence: &Sequence, motion: Motion, writer: &mut Writer) {
    let columns = sequence.macroblock_columns;
    let mut skipped = 0;
    for index in 0..sequence.macroblock_count {
        if index >= columns && !index.is_multiple_of(columns) {
            skipped += 1;
            continue;
        }
        writer.unsigned(std::mem::take(&mut skipped)); // mb_skip_run
        writer.unsigned(0); // mb_type: P_L0_16x16
        let difference = if index == 0 { motion } else { Motion::default() };
        writer.signed(difference.x.into()); // mvd_l0, across
        writer.signed(difference.y.into()); // mvd_l0, down
        writer.unsigned(0); // coded_block_pattern: none
    }
    if skipped > 0 {
        writer.unsigned(skipped); // mb_skip_run
    }
}

/// Parses the header of a slice NAL unit with its known parameter sets.
///
/// # Errors
/// Fails as [`SliceHeader::parse`] does, and if the slice ends within the fields read.
pub(crate) fn read(unit: &NalUnit<'_>, sequence: &Sequence) -> Result<SliceHeader, Error> {
    let start = unit.payload_start(START_BYTES);
    let header = SliceHeader::parse(&start, unit.kind(), sequence)?;
    let stop = start.last().map_or(0, |last| start.len() * 8 - 1 - last.trailing_zeros() as usize);
    if unit.is_shorter_than(START_BYTES) && stop < header.end_position {
        return Err(Error::Truncated { what: "slice" });
    }
    Ok(header)
}

/// Value of `slice_type` that says that this slice and all others of its picture are P (table 7-6).
const SLICE_TYPE_ALL_P: u32 = 5;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sequence(order: PictureOrder) -> Sequence {
        Sequence {
            id: 0,
            profile: [66, 192, 31],
            frame_number_bits: 15,
            order,
            macroblock_columns: 80,
            macroblock_count: 560,
            cropped: [0, 0],
        }
    }

    fn parameters(flags: u8) -> PictureParameters {
        PictureParameters {
            id: 3,
            sequence_id: 0,
            bottom_order_present: flags & 1 != 0,
            reference_count: 1 + u32::from(flags >> 1 & 1),
            weighted: flags & 4 != 0,
            deblocking_control: flags & 8 != 0,
            redundant_count_present: flags & 16 != 0,
        }
    }

    proptest! {
        #[test]
        fn a_skip_slice_reads_as_written(
            frame_number in 0u32..1 << 15,
            low_bits in 0u32..64,
            flags in 0u8..32,
            x in -9i16..9,
            y in -9i16..9,
        ) {
            let sequence = sequence(PictureOrder::LowBits(6));
            let bytes = write_skip(2, frame_number, low_bits, &sequence, &parameters(flags), Motion { x, y });
            let units = nal::split(&bytes).unwrap();
            prop_assert_eq!(units.len(), 1);
            prop_assert_eq!((units[0].kind(), units[0].reference()), (1, 2));
            let header = read(&units[0], &sequence).unwrap();
            prop_assert!(header.predicted);
            prop_assert_eq!(header.first_macroblock, 0);
            prop_assert_eq!(header.frame_number, frame_number);
            prop_assert_eq!(header.picture_parameters_id, 3);
            prop_assert_eq!(header.order.map(|(bits, _)| bits), Some(low_bits));
        }

        #[test]
        fn any_bytes_parse_without_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
            kind in 1u8..6,
        ) {
            for order in [
                PictureOrder::LowBits(16),
                PictureOrder::Differences { always_zero: false },
                PictureOrder::Decoding,
            ] {
                let _ = SliceHeader::parse(&bytes, kind, &sequence(order));
            }
            let _ = SliceHeader::parameters_id(&bytes);
        }
    }
}
