//! Parameter sets and slice headers of the streams that are written (7.3.2.1, 7.3.2.2, 7.3.3).

use super::bits::BitWriter;
use crate::Error;
use crate::h264::bits::Writer;
use crate::h264::nal;

/// The shape of a stream's pictures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// Macroblocks in a row, and rows.
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// Luma samples that are not shown, on the right and below: even.
    pub(super) cropped: [usize; 2],
    pub(super) pictures_per_second: u32,
    /// How many pictures back one may refer: `max_num_ref_frames`.
    pub(super) references: u32,
}

/// log2_max_frame_num: as long as it may be, so that it wraps every 18 minutes.
pub(super) const FRAME_NUMBER_BITS: u32 = 16;

/// A picture parameter set for each choice of `constrained_intra_pred_flag`, by this number.
pub(super) const CONSTRAINED_SETS: [bool; 2] = [false, true];

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
    /// The lowest level that such pictures have, 3.1 at least.
    ///
    /// # Errors
    /// [`Error::Dimensions`] if there is none.
    pub(super) fn level(&self) -> Result<u8, Error> {
        let size = (self.columns * self.rows) as u64;
        let rate = size * u64::from(self.pictures_per_second);
        // No side may be longer than the root of eight times the greatest size.
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
        writer.unsigned(2); // pic_order_cnt_type: the order of decoding
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

    /// vui_parameters (E.1.1): that nothing is reordered, so that no decoder waits.
    fn usability(&self, writer: &mut Writer) {
        writer.bits(0, 4); // aspect ratio, overscan, signal type, chroma place: not told
        writer.bit(true); // timing_info_present_flag
        writer.bits(1, 32); // num_units_in_tick
        writer.bits(self.pictures_per_second * 2, 32); // time_scale
        writer.bit(false); // fixed_frame_rate_flag
        writer.bits(0, 3); // no hypothetical decoder's parameters, no pic_struct
        writer.bit(true); // bitstream_restriction_flag
        writer.bit(true); // motion_vectors_over_pic_boundaries_flag
        writer.unsigned(0); // max_bytes_per_pic_denom
        writer.unsigned(0); // max_bits_per_mb_denom
        writer.unsigned(16); // log2_max_mv_length_horizontal
        writer.unsigned(16); // log2_max_mv_length_vertical
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

/// What a slice header tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    /// The number of the first macroblock.
    pub(super) first: u32,
    /// `idr_pic_id` of an IDR.
    pub(super) idr: Option<u16>,
    /// Whether it is a P slice.
    pub(super) predicted: bool,
    pub(super) constrained: bool,
    /// frame_num
    pub(super) number: u16,
    /// How many pictures further back than the last one the reference lies.
    pub(super) back: u32,
    pub(super) qp: u8,
    /// Whether edges within the slice are filtered.
    pub(super) deblocked: bool,
    /// Whether the picture may have slices of another type.
    pub(super) mixed: bool,
}

impl Header {
    /// nal_ref_idc and nal_unit_type.
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
            writer.put(u32::from(self.back > 0), 1); // ref_pic_list_modification_flag_l0
            if self.back > 0 {
                writer.unsigned(0); // modification_of_pic_nums_idc: subtract
                // PicNumPred is that of this picture; the last one is 1 less (8.2.4.3.1).
                writer.unsigned(self.back); // abs_diff_pic_num_minus1
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
