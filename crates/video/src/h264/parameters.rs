//! Sequence and picture parameter sets (7.3.2.1, 7.3.2.2): the fields that slice headers need.

use super::bits::Reader;
use crate::Error;

/// Fields of a sequence parameter set that slice headers depend on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sequence {
    pub(crate) id: u32,
    /// profile_idc, the constraint flags and level_idc: the middle of a codec string.
    pub(crate) profile: [u8; 3],
    /// Length of `frame_num` in bits, from `log2_max_frame_num_minus4`: 4 to 16.
    pub(crate) frame_number_bits: u32,
    pub(crate) order: PictureOrder,
    /// Macroblocks in a row, PicWidthInMbs.
    pub(crate) macroblock_columns: u32,
    /// Macroblocks of a picture, PicWidthInMbs * FrameHeightInMbs.
    pub(crate) macroblock_count: u32,
    /// Pixel columns and rows at the right and bottom that are not shown.
    pub(crate) cropped: [u32; 2],
}

/// Coding of the output order in slice headers (pic_order_cnt_type).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PictureOrder {
    /// Type 0: slice headers have the low bits of the order; holds their number.
    LowBits(u32),
    /// Type 1: slice headers have differences, unless `always_zero` is true.
    Differences { always_zero: bool },
    /// Type 2: pictures are output in decoding order; slice headers have nothing.
    Decoding,
}

impl Sequence {
    /// Parses the payload of a sequence parameter set.
    ///
    /// # Errors
    /// Fails if it is truncated, out of range, interlaced or not 4:2:0 in 8 bits, or crops at the
    /// left or top.
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(payload, "sequence parameter set");
        let mut profile = [0; 3];
        for byte in &mut profile {
            *byte = reader.bits(8)? as u8;
        }
        let id = reader.at_most(31, "seq_parameter_set_id")?;
        if HIGH_PROFILES.contains(&profile[0]) {
            skip_high_profile(&mut reader)?;
        }
        let frame_number_bits = 4 + reader.at_most(12, "log2_max_frame_num_minus4")?;
        let order = read_order(&mut reader)?;
        reader.at_most(16, "max_num_ref_frames")?;
        reader.bit()?; // gaps_in_frame_num_value_allowed_flag
        let width = 1 + reader.at_most(1023, "pic_width_in_mbs_minus1")?;
        let height = 1 + reader.at_most(1023, "pic_height_in_map_units_minus1")?;
        if !reader.bit()? {
            return Err(Error::Unsupported { what: "interlaced coding" });
        }
        reader.bit()?; // direct_8x8_inference_flag
        let cropped = read_cropping(&mut reader)?;
        Ok(Self {
            id,
            profile,
            frame_number_bits,
            order,
            macroblock_columns: width,
            macroblock_count: width * height,
            cropped,
        })
    }
}

/// Fields of a picture parameter set that slice headers depend on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PictureParameters {
    pub(crate) id: u32,
    pub(crate) sequence_id: u32,
    /// Value of `bottom_field_pic_order_in_frame_present_flag`.
    pub(crate) bottom_order_present: bool,
    /// Default number of references of a P slice: `num_ref_idx_l0_default_active_minus1` + 1.
    pub(crate) reference_count: u32,
    /// Value of `weighted_pred_flag`.
    pub(crate) weighted: bool,
    /// Value of `deblocking_filter_control_present_flag`.
    pub(crate) deblocking_control: bool,
    /// Value of `redundant_pic_cnt_present_flag`.
    pub(crate) redundant_count_present: bool,
}

impl PictureParameters {
    /// Parses the payload of a picture parameter set.
    ///
    /// # Errors
    /// Fails if it is truncated, out of range, with CABAC or with slice groups.
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(payload, "picture parameter set");
        let id = reader.at_most(255, "pic_parameter_set_id")?;
        let sequence_id = reader.at_most(31, "seq_parameter_set_id")?;
        if reader.bit()? {
            return Err(Error::Unsupported { what: "CABAC" });
        }
        let bottom_order_present = reader.bit()?;
        if reader.unsigned()? != 0 {
            return Err(Error::Unsupported { what: "slice groups" });
        }
        let reference_count = 1 + reader.at_most(31, "num_ref_idx_l0_default_active_minus1")?;
        reader.at_most(31, "num_ref_idx_l1_default_active_minus1")?;
        let weighted = reader.bit()?;
        reader.bits(2)?; // weighted_bipred_idc
        reader.signed()?; // pic_init_qp_minus26
        reader.signed()?; // pic_init_qs_minus26
        reader.signed()?; // chroma_qp_index_offset
        let deblocking_control = reader.bit()?;
        reader.bit()?; // constrained_intra_pred_flag
        let redundant_count_present = reader.bit()?;
        Ok(Self {
            id,
            sequence_id,
            bottom_order_present,
            reference_count,
            weighted,
            deblocking_control,
            redundant_count_present,
        })
    }
}

/// Profiles whose sequence parameter sets contain the sampling format (7.3.2.1.1).
const HIGH_PROFILES: [u8; 13] = [44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 244];

fn skip_high_profile(reader: &mut Reader<'_>) -> Result<(), Error> {
    let format = reader.at_most(3, "chroma_format_idc")?;
    let luma_depth = reader.at_most(6, "bit_depth_luma_minus8")?;
    let chroma_depth = reader.at_most(6, "bit_depth_chroma_minus8")?;
    reader.bit()?; // qpprime_y_zero_transform_bypass_flag
    if format != 1 || luma_depth != 0 || chroma_depth != 0 {
        return Err(Error::Unsupported { what: "a sampling other than 4:2:0 in 8 bits" });
    }
    if reader.bit()? {
        return Err(Error::Unsupported { what: "a scaling matrix" });
    }
    Ok(())
}

/// Reads the pixel columns at the right and rows at the bottom that are not shown, at most 14 each;
/// for 4:2:0 they are coded in pairs. Cropping at the left or at the top is refused.
fn read_cropping(reader: &mut Reader<'_>) -> Result<[u32; 2], Error> {
    let mut cropped = [0; 2];
    if reader.bit()? {
        for side in &mut cropped {
            if reader.unsigned()? != 0 {
                return Err(Error::Unsupported { what: "cropping at the left or at the top" });
            }
            *side = 2 * reader.at_most(7, "frame_crop_offset")?;
        }
    }
    Ok(cropped)
}

fn read_order(reader: &mut Reader<'_>) -> Result<PictureOrder, Error> {
    match reader.at_most(2, "pic_order_cnt_type")? {
        0 => {
            let bits = 4 + reader.at_most(12, "log2_max_pic_order_cnt_lsb_minus4")?;
            Ok(PictureOrder::LowBits(bits))
        }
        1 => {
            let always_zero = reader.bit()?;
            reader.signed()?; // offset_for_non_ref_pic
            reader.signed()?; // offset_for_top_to_bottom_field
            let cycle = reader.at_most(255, "num_ref_frames_in_pic_order_cnt_cycle")?;
            for _ in 0..cycle {
                reader.signed()?; // offset_for_ref_frame
            }
            Ok(PictureOrder::Differences { always_zero })
        }
        _ => Ok(PictureOrder::Decoding),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::h264::bits::Writer;

    fn sequence(order: impl Fn(&mut Writer)) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.bits(0x42C01F, 24);
        writer.unsigned(0);
        writer.unsigned(11);
        order(&mut writer);
        writer.unsigned(1);
        writer.bit(false);
        writer.unsigned(79);
        writer.unsigned(6);
        writer.bit(true);
        writer.bit(true);
        writer.bit(true);
        for offset in [0, 3, 0, 4] {
            writer.unsigned(offset);
        }
        writer.finish()
    }

    #[test]
    fn each_picture_order_type_is_read() {
        let cases: [(Vec<u8>, PictureOrder); 3] = [
            (
                sequence(|writer| {
                    writer.unsigned(0);
                    writer.unsigned(2);
                }),
                PictureOrder::LowBits(6),
            ),
            (
                sequence(|writer| {
                    writer.unsigned(1);
                    writer.bit(true);
                    writer.signed(-3);
                    writer.signed(4);
                    writer.unsigned(2);
                    writer.signed(1);
                    writer.signed(2);
                }),
                PictureOrder::Differences { always_zero: true },
            ),
            (sequence(|writer| writer.unsigned(2)), PictureOrder::Decoding),
        ];
        for (payload, order) in cases {
            let sequence = Sequence::parse(&payload).unwrap();
            assert_eq!(sequence.order, order);
            assert_eq!(sequence.frame_number_bits, 15);
            assert_eq!((sequence.macroblock_columns, sequence.macroblock_count), (80, 560));
            assert_eq!(sequence.profile, [0x42, 0xC0, 0x1F]);
            assert_eq!(sequence.cropped, [6, 8]);
        }
    }

    #[test]
    fn a_cut_parameter_set_is_an_error() {
        let payload = sequence(|writer| writer.unsigned(2));
        for length in 0..payload.len() - 1 {
            assert!(Sequence::parse(&payload[..length]).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_parse_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Sequence::parse(&bytes);
            let _ = PictureParameters::parse(&bytes);
        }
    }
}
