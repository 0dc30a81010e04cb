//! Parameter sets and slice headers of the written streams (7.3.2.1, 7.3.2.2, 7.3.3).

use super::bits::BitWriter;
use crate::Error;
use crate::h264::bits::{Reader, Writer};
use crate::h264::nal;

/// The shape of a stream's pictures, as coded in its parameter sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Macroblocks in a row; `rows` is the number of rows of macroblocks.
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// Luma columns at the right and luma rows at the bottom that are not shown: even numbers.
    pub(super) cropped: [usize; 2],
    pub(super) pictures_per_second: u32,
    /// Maximum distance of a reference in pictures: `max_num_ref_frames`.
    pub(super) references: u32,
    /// True if vectors stay within the picture: `motion_vectors_over_pic_boundaries_flag` is unset.
    pub(super) contained: bool,
}

/// Value of log2_max_frame_num: the maximum, so that frame_num wraps only every 18 minutes at 60
/// pictures per second.
pub(super) const FRAME_NUMBER_BITS: u32 = 16;

/// Value of `constrained_intra_pred_flag` in each picture parameter set, by its id.
pub(super) const CONSTRAINED_SETS: [bool; 2] = [false, true];

/// Types of the NAL units of an IDR's access unit, in their order.
const KINDS: [u8; 4] = [
    nal::kind::SEQUENCE_PARAMETERS,
    nal::kind::PICTURE_PARAMETERS,
    nal::kind::PICTURE_PARAMETERS,
    nal::kind::IDR_SLICE,
];
/// Maximum number of macroblocks along the longest side of a picture, minus 1.
const SIDE_MAX: u32 = 511;

/// Levels of table A-1 from 3.1 on: level_idc, MaxMBPS, MaxFS, MaxDpbMbs.
const LEVELS: [(u8, u64, u64, u64); 9] = [
    (31, 108_000, 3_600, 18_000),
    (32, 216_000, 5_120, 20_480),
    (40, 245_760, 8_192, 32_768),
    (42, 522_240, 8_704, 34_816),
    (50, 589_824, 22_080, 110_400),
    (51, 983_040, 36_864, 184_320),
    (52, 2_073_600, 36_864, 184_320),
    (60, 4_177_920, 139_264, 696_320),
    (62, 16_711_680, 139_264, 696_320),
];

impl Shape {
    /// Parses the parameter sets of an IDR.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if they are not byte for byte those that a
    /// [`StripEncoder`](super::StripEncoder) writes; others if they cannot be parsed.
    pub fn read(idr: &[u8]) -> Result<Self, Error> {
        let units = nal::split(idr)?;
        let kinds: Vec<u8> = units.iter().map(nal::NalUnit::kind).collect();
        let mut sets = Vec::new();
        if kinds == KINDS {
            let shape = Self::read_sequence(&units[0].payload())?;
            shape.write_sets(&mut sets)?;
            if idr.starts_with(&sets) {
                return Ok(shape);
            }
        }
        Err(Error::Unsupported { what: "another encoder's parameter sets" })
    }

    /// Reads the fields of a sequence parameter set that vary between our encoders' strips, and
    /// skips the rest unchecked.
    fn read_sequence(payload: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(payload, "sequence parameter set");
        reader.bits(24)?;
        for _ in 0..3 {
            reader.unsigned()?;
        }
        let references = reader.at_most(16, "max_num_ref_frames")?;
        reader.bit()?;
        let columns = reader.at_most(SIDE_MAX, "pic_width_in_mbs_minus1")? as usize + 1;
        let rows = reader.at_most(SIDE_MAX, "pic_height_in_map_units_minus1")? as usize + 1;
        reader.bits(2)?;
        let mut cropped = [0; 2];
        if reader.bit()? {
            for side in &mut cropped {
                reader.unsigned()?;
                *side = reader.at_most(7, "frame_crop_offset")? as usize * 2;
            }
        }
        reader.bits(6)?;
        reader.bits(32)?;
        let pictures_per_second = reader.bits(32)? / 2;
        reader.bits(5)?;
        let contained = !reader.bit()?;
        Ok(Self { columns, rows, cropped, pictures_per_second, references, contained })
    }

    /// Returns the number of macroblocks of a picture.
    pub(super) fn macroblocks(&self) -> u32 {
        (self.columns * self.rows) as u32
    }

    /// Returns the lowest level that allows such pictures, at least 3.1.
    ///
    /// # Errors
    /// [`Error::Dimensions`] if no level does.
    pub(super) fn level(&self) -> Result<u8, Error> {
        let size = (self.columns * self.rows) as u64;
        let rate = size * u64::from(self.pictures_per_second);
        // No side may be longer than the square root of eight times the maximum size.
        let longest = self.columns.max(self.rows) as u64;
        LEVELS
            .iter()
            .find(|&&(_, rate_max, size_max, kept_max)| {
                let fits = rate <= rate_max && size <= size_max;
                let kept = size * u64::from(self.references) <= kept_max;
                fits && kept && longest * longest <= 8 * size_max
            })
            .map(|&(level, ..)| level)
            .ok_or(Error::Dimensions { width: self.columns * 16, height: self.rows * 16 })
    }

    /// Writes the sequence parameter set and both picture parameter sets, as NAL units.
    ///
    /// # Errors
    /// As [`level`](Self::level).
    pub(super) fn write_sets(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let level = self.level()?;
        nal::write(0x67, &self.sequence(level), out);
        for id in 0..CONSTRAINED_SETS.len() {
            nal::write(0x68, &picture_set(id as u32), out);
        }
        Ok(())
    }

    fn sequence(&self, level: u8) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.bits(66, 8); // profile_idc: Baseline
        writer.bits(0b1100_0000, 8); // constraint_set0 and 1: constrained baseline
        writer.bits(level.into(), 8);
        writer.unsigned(0); // seq_parameter_set_id
        writer.unsigned(FRAME_NUMBER_BITS - 4);
        writer.unsigned(2); // pic_order_cnt_type: decoding order
        writer.unsigned(self.references); // max_num_ref_frames
        writer.bit(false); // gaps_in_frame_num_value_allowed_flag
        writer.unsigned(self.columns as u32 - 1);
        writer.unsigned(self.rows as u32 - 1);
        writer.bit(true); // frame_mbs_only_flag
        writer.bit(true); // direct_8x8_inference_flag
        let [right, below] = self.cropped;
        writer.bit(right + below > 0); // frame_cropping_flag
        if right + below > 0 {
            for cropped in [0, right / 2, 0, below / 2] {
                writer.unsigned(cropped as u32);
            }
        }
        writer.bit(true); // vui_parameters_present_flag
        self.usability(&mut writer);
        writer.finish()
    }

    /// Writes vui_parameters (E.1.1): they declare that nothing is reordered, so that no decoder
    /// waits.
    fn usability(&self, writer: &mut Writer) {
        writer.bits(0, 4); // aspect ratio, overscan, signal type, chroma location: not present
        writer.bit(true); // timing_info_present_flag
        writer.bits(1, 32); // num_units_in_tick
        writer.bits(self.pictures_per_second * 2, 32); // time_scale
        writer.bit(false); // fixed_frame_rate_flag
        writer.bits(0, 3); // no hypothetical decoder's parameters, no pic_struct
        writer.bit(true); // bitstream_restriction_flag
        writer.bit(!self.contained); // motion_vectors_over_pic_boundaries_flag
        writer.unsigned(0); // max_bytes_per_pic_denom
        writer.unsigned(0); // max_bits_per_mb_denom
        writer.unsigned(15); // log2_max_mv_length_horizontal
        writer.unsigned(15); // log2_max_mv_length_vertical
        writer.unsigned(0); // max_num_reorder_frames
        writer.unsigned(self.references); // max_dec_frame_buffering
    }
}

fn picture_set(id: u32) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.unsigned(id);
    writer.unsigned(0); // seq_parameter_set_id
    writer.bit(false); // entropy_coding_mode_flag: CAVLC
    writer.bit(false); // bottom_field_pic_order_in_frame_present_flag
    writer.unsigned(0); // num_slice_groups_minus1
    writer.unsigned(0); // num_ref_idx_l0_default_active_minus1
    writer.unsigned(0); // num_ref_idx_l1_default_active_minus1
    writer.bit(false); // weighted_pred_flag
    writer.bits(0, 2); // weighted_bipred_idc
    writer.signed(0); // pic_init_qp_minus26
    writer.signed(0); // pic_init_qs_minus26
    writer.signed(0); // chroma_qp_index_offset
    writer.bit(true); // deblocking_filter_control_present_flag
    writer.bit(CONSTRAINED_SETS[id as usize]); // constrained_intra_pred_flag
    writer.bit(false); // redundant_pic_cnt_present_flag
    writer.finish()
}

/// Fields of a slice header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    /// Number of the first macroblock.
    pub(super) first: u32,
    /// Value of `idr_pic_id`; `None` if the slice is no IDR's.
    pub(super) idr: Option<u16>,
    /// True if the slice is a P slice.
    pub(super) predicted: bool,
    pub(super) constrained: bool,
    /// Value of `frame_num`.
    pub(super) number: u16,
    /// Reference index: distance in pictures of the reference from the last picture, 0 for the last
    /// picture itself.
    pub(super) reference_index: u32,
    pub(super) qp: u8,
    /// True if the deblocking filter is applied within the slice.
    pub(super) deblocked: bool,
    /// True if other slices of the picture may have another type.
    pub(super) mixed: bool,
}

impl Header {
    /// Returns the NAL unit's header byte: `nal_ref_idc` 3 and `nal_unit_type`.
    pub(super) fn unit_header(&self) -> u8 {
        let kind = if self.idr.is_some() { nal::kind::IDR_SLICE } else { nal::kind::SLICE };
        3 << 5 | kind
    }

    pub(super) fn write(&self, writer: &mut BitWriter) {
        writer.unsigned(self.first);
        let kind = if self.predicted { 0 } else { 2 };
        writer.unsigned(kind + if self.mixed { 0 } else { 5 });
        writer.unsigned(u32::from(self.constrained));
        writer.put(self.number.into(), FRAME_NUMBER_BITS);
        if let Some(id) = self.idr {
            writer.unsigned(id.into());
        }
        if self.predicted {
            writer.put(0, 1); // num_ref_idx_active_override_flag
            writer.put(u32::from(self.reference_index > 0), 1); // ref_pic_list_modification_flag_l0
            if self.reference_index > 0 {
                writer.unsigned(0); // modification_of_pic_nums_idc: subtract
                // PicNumPred is that of this picture; the last one's is 1 less (8.2.4.3.1).
                writer.unsigned(self.reference_index); // abs_diff_pic_num_minus1
                writer.unsigned(3);
            }
        }
        if self.idr.is_some() {
            writer.put(0, 2); // no_output_of_prior_pics_flag, long_term_reference_flag
        } else {
            writer.put(0, 1); // adaptive_ref_pic_marking_mode_flag
        }
        writer.signed(i32::from(self.qp) - 26); // slice_qp_delta
        if self.deblocked {
            writer.unsigned(2); // disable_deblocking_filter_idc: within the slice
            writer.signed(0); // slice_alpha_c0_offset_div2
            writer.signed(0); // slice_beta_offset_div2
        } else {
            writer.unsigned(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shapes() -> impl Strategy<Value = Shape> {
        let sides = (1usize..=80, 1usize..=45);
        let cropped = [0usize..8, 0..8].map(|halves| halves.prop_map(|half| half * 2));
        (sides, cropped, 1u32..=60, 1u32..=16, any::<bool>()).prop_map(
            |((columns, rows), cropped, pictures_per_second, references, contained)| Shape {
                columns,
                rows,
                cropped,
                pictures_per_second,
                references,
                contained,
            },
        )
    }

    fn idr(shape: &Shape) -> Vec<u8> {
        let mut bytes = Vec::new();
        shape.write_sets(&mut bytes).unwrap();
        nal::write(0x65, &[0x80], &mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn a_shape_is_read_as_written(shape in shapes()) {
            prop_assert_eq!(Shape::read(&idr(&shape)).unwrap(), shape);
        }

        #[test]
        fn headers_that_parse_equal_our_own_bytes(
            shape in shapes(),
            changes in proptest::collection::vec((0usize..60, any::<u8>()), 1..4),
        ) {
            let mut bytes = idr(&shape);
            for (at, value) in changes {
                let at = at % bytes.len();
                bytes[at] = value;
            }
            if let Ok(read) = Shape::read(&bytes) {
                let mut sets = Vec::new();
                read.write_sets(&mut sets).unwrap();
                prop_assert!(bytes.starts_with(&sets));
            }
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Shape::read(&bytes);
            let _ = Shape::read_sequence(&bytes);
        }
    }
}
