use std::collections::VecDeque;

use super::bits::BitWriter;
use super::headers::{FRAME_NUMBER_BITS, Header, Shape};
use crate::h264::bits::Reader;
use crate::h264::nal::{self, NalUnit};
use crate::{Error, SliceKind};

/// Joiner of strips' slices into one standard picture of several slices, for recordings and
/// ordinary players.
///
/// The slices' data stay unchanged; their headers are rewritten with the number of their first
/// macroblock. This is correct because nothing in a slice depends on its position: neither
/// prediction nor deblocking crosses its edge, nor do the vectors of encoders with
/// [`Config::joinable`](super::Config::joinable).
///
/// A strip without a slice repeats its last picture, and is grey before its first IDR. Its stream
/// then has fewer pictures than the joined one, which finds its slices' references by the strip's
/// own numbers.
#[derive(Clone, Debug)]
pub struct Joiner {
    shape: Shape,
    strips: Vec<Strip>,
    number: u16,
    idr_id: u16,
    begun: bool,
}

/// A picture joined from all strips.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joined {
    /// Kind of the picture: an IDR if all strips restart with one, or if it is the first joined
    /// picture; otherwise predicted, with I slices for the strips that restart.
    pub kind: SliceKind,
    /// The access unit in Annex B form; an IDR begins with its parameter sets.
    pub bytes: Vec<u8>,
    /// Number of strips whose slice could not be joined, so that they repeat their last picture.
    pub refused: usize,
}

#[derive(Clone, Debug)]
struct Strip {
    shape: Shape,
    /// Number of the strip's first macroblock.
    first: u32,
    /// The strip's own `frame_num` in each of the last joined pictures, the newest first; empty
    /// before its IDR.
    shown: VecDeque<u16>,
}

/// A slice of a strip: its header, its payload, and the bit position after the header.
type Slice = (Header, Vec<u8>, usize);

impl Joiner {
    /// Creates a joiner of strips of these shapes, from the top.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for strips whose vectors leave them, or that differ in more than
    /// their height; [`Error::Invalid`] for no strips; [`Error::Dimensions`] if no level allows the
    /// picture.
    pub fn new(shapes: &[Shape]) -> Result<Self, Error> {
        let (Some(top), Some(bottom)) = (shapes.first(), shapes.last()) else {
            return Err(Error::Invalid { what: "strips", value: 0 });
        };
        if shapes.iter().any(|shape| !shape.contained) {
            return Err(Error::Unsupported { what: "joining strips whose vectors leave them" });
        }
        let shape = Shape {
            rows: shapes.iter().map(|shape| shape.rows).sum(),
            cropped: [top.cropped[0], bottom.cropped[1]],
            ..*top
        };
        let mut strips = Vec::with_capacity(shapes.len());
        let mut first = 0;
        for (index, strip) in shapes.iter().enumerate() {
            let below = if index + 1 == shapes.len() { shape.cropped[1] } else { 0 };
            let like = Shape { rows: strip.rows, cropped: [shape.cropped[0], below], ..shape };
            if *strip != like {
                return Err(Error::Unsupported { what: "joining strips that are not alike" });
            }
            strips.push(Strip { shape: *strip, first, shown: VecDeque::new() });
            first += strip.macroblocks();
        }
        shape.level()?;
        // The bit writer's numbers end here.
        if first >= u32::from(u16::MAX) {
            let (width, height) = (shape.columns * 16, shape.rows * 16);
            return Err(Error::Dimensions { width, height });
        }
        Ok(Self { shape, strips, number: 0, idr_id: 0, begun: false })
    }

    /// Joins the access units of one picture, one entry per strip from the top; `None` for a strip
    /// without one.
    ///
    /// An access unit counts as missing if it cannot be parsed, does not belong to the strip's
    /// stream, or selects another picture parameter set than the uppermost usable one.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless there is an entry for each strip; [`Error::MissingParameters`]
    /// before the first IDR of any strip.
    pub fn join(&mut self, units: &[Option<&[u8]>]) -> Result<Joined, Error> {
        if units.len() != self.strips.len() {
            return Err(Error::Invalid { what: "strips", value: units.len() as u64 });
        }
        let read = |(strip, unit): (&Strip, &Option<&[u8]>)| strip.read((*unit)?).ok();
        let mut slices: Vec<Option<Slice>> = self.strips.iter().zip(units).map(read).collect();
        let constrained = slices.iter().flatten().next().is_some_and(|slice| slice.0.constrained);
        for slice in &mut slices {
            // The standard allows two parameter sets; openh264 and the concealer do not.
            slice.take_if(|slice| slice.0.constrained != constrained);
        }
        let is_idr = |slice: &Option<Slice>| slice.as_ref().is_some_and(|it| it.0.idr.is_some());
        let idr = if self.begun { slices.iter().all(is_idr) } else { slices.iter().any(is_idr) };
        if !idr && !self.begun {
            return Err(Error::MissingParameters { set: "sequence", id: 0 });
        }
        let given = units.iter().flatten().count();
        let refused = given - slices.iter().flatten().count();
        let mut bytes = Vec::new();
        if idr {
            self.begin(&mut bytes)?;
        }
        let still = Header {
            first: 0,
            idr: idr.then_some(self.idr_id),
            predicted: !idr,
            constrained,
            number: self.number,
            reference_index: 0,
            qp: 26,
            deblocked: false,
            mixed: true,
        };
        let mut writer = BitWriter::default();
        for (strip, slice) in self.strips.iter_mut().zip(&slices) {
            writer.clear();
            strip.write(&mut writer, still, slice.as_ref());
            nal::write(still.unit_header(), writer.finish(), &mut bytes);
            strip.note(slice.as_ref().map(|slice| &slice.0));
        }
        self.idr_id ^= u16::from(idr);
        self.number = self.number.wrapping_add(1);
        let kind = if idr { SliceKind::Idr } else { SliceKind::Predicted };
        Ok(Joined { kind, bytes, refused })
    }

    fn begin(&mut self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        self.shape.write_sets(bytes)?;
        self.strips.iter_mut().for_each(|strip| strip.shown.clear());
        (self.number, self.begun) = (0, true);
        Ok(())
    }
}

impl Strip {
    /// Parses an access unit of the strip's stream; fails for an IDR of another shape, and for a
    /// predicted picture before any IDR.
    fn read(&self, unit: &[u8]) -> Result<Slice, Error> {
        let slice = read(unit)?;
        if slice.0.idr.is_some() {
            if Shape::read(unit)? != self.shape {
                return Err(Error::Unsupported { what: "a strip that changes its shape" });
            }
        } else if self.shown.is_empty() {
            return Err(Error::MissingParameters { set: "sequence", id: 0 });
        }
        Ok(slice)
    }

    /// Writes the strip's slice of a picture, with a header based on `still`. Without a slice the
    /// strip stays as it was, or is grey in an IDR.
    fn write(&self, writer: &mut BitWriter, still: Header, slice: Option<&Slice>) {
        let still = Header { first: self.first, ..still };
        if let Some((header, payload, position)) = slice {
            let Header { predicted, qp, deblocked, .. } = *header;
            let reference_index = if predicted { self.reference_index(header) } else { 0 };
            Header { predicted, qp, deblocked, reference_index, ..still }.write(writer);
            copy_bits(writer, payload, *position);
        } else {
            still.write(writer);
            if still.predicted {
                writer.unsigned(self.shape.macroblocks()); // mb_skip_run
            } else {
                (0..self.shape.macroblocks()).for_each(|_| writer.put(GREY, 8));
            }
        }
    }

    /// Returns the distance of a slice's reference from the last joined picture, in joined
    /// pictures; 0 if decoders no longer keep it.
    fn reference_index(&self, header: &Header) -> u32 {
        let reference = header.number.wrapping_sub(1 + header.reference_index as u16);
        self.shown.iter().position(|shown| *shown == reference).unwrap_or(0) as u32
    }

    /// Records the strip's own `frame_num` in the picture just joined; without a slice it is that
    /// of the picture before.
    fn note(&mut self, header: Option<&Header>) {
        if header.is_some_and(|header| header.idr.is_some()) {
            self.shown.clear();
        }
        let Some(shown) = header.map(|header| header.number).or(self.shown.front().copied()) else {
            return;
        };
        self.shown.push_front(shown);
        self.shown.truncate(self.shape.references as usize);
    }
}

/// Bits of a macroblock of an I slice without residual, all samples 128: I_16x16_2_0_0 (3),
/// intra_chroma_pred_mode 0, mb_qp_delta 0, and no level.
const GREY: u32 = 0b0010_0111;

/// Returns the only slice of an access unit: its header, its payload, and the bit position after
/// the header.
fn read(access_unit: &[u8]) -> Result<(Header, Vec<u8>, usize), Error> {
    let units = nal::split(access_unit)?;
    let is_slice =
        |unit: &&NalUnit<'_>| matches!(unit.kind(), nal::kind::SLICE | nal::kind::IDR_SLICE);
    let mut slices = units.iter().filter(is_slice);
    let unit = slices.next().ok_or(Error::Truncated { what: "access unit" })?;
    if slices.next().is_some() {
        return Err(Error::Unsupported { what: "several slices in a strip" });
    }
    let payload = unit.payload();
    let (header, position) = read_header(&payload, unit.kind() == nal::kind::IDR_SLICE)?;
    Ok((header, payload, position))
}

/// Parses a slice header written by [`Header::write`]; also returns the bit position after it.
fn read_header(payload: &[u8], idr: bool) -> Result<(Header, usize), Error> {
    let mut reader = Reader::new(payload, "slice header");
    let first = reader.unsigned()?;
    let predicted = match reader.at_most(9, "slice_type")? % 5 {
        0 if idr => return Err(Error::Unsupported { what: "a P slice in an IDR" }),
        0 => true,
        2 => false,
        _ => return Err(Error::Unsupported { what: "a B or switching slice" }),
    };
    let constrained = reader.at_most(1, "pic_parameter_set_id")? == 1;
    let number = reader.bits(FRAME_NUMBER_BITS)? as u16;
    let idr = if idr { Some(reader.at_most(65_534, "idr_pic_id")? as u16) } else { None };
    let mut reference_index = 0;
    if predicted {
        if reader.bit()? {
            return Err(Error::Unsupported { what: "a number of references of its own" });
        }
        if reader.bit()? {
            let kind = reader.at_most(3, "modification_of_pic_nums_idc")?;
            reference_index = reader.at_most(15, "abs_diff_pic_num_minus1")?;
            if kind != 0 || reader.at_most(3, "modification_of_pic_nums_idc")? != 3 {
                return Err(Error::Unsupported { what: "another order of references" });
            }
        }
    }
    reader.bits(if idr.is_some() { 2 } else { 1 })?;
    let qp = reader.signed()? + 26;
    let qp = u8::try_from(qp).ok().filter(|qp| *qp <= 51);
    let qp = qp.ok_or(Error::Invalid { what: "slice_qp_delta", value: 0 })?;
    let deblocked = reader.at_most(2, "disable_deblocking_filter_idc")? != 1;
    if deblocked {
        reader.signed()?;
        reader.signed()?;
    }
    let header = Header {
        first,
        idr,
        predicted,
        constrained,
        number,
        reference_index,
        qp,
        deblocked,
        mixed: false,
    };
    Ok((header, reader.position()))
}

/// Copies all bits of a payload from `position` up to the stop bit, without it.
fn copy_bits(writer: &mut BitWriter, payload: &[u8], position: usize) {
    let zeros = payload.last().map_or(0, |last| last.trailing_zeros() as usize);
    let end = (payload.len() * 8).saturating_sub(zeros + 1);
    let mut at = position;
    while at < end {
        let count = (8 - at % 8).min(end - at);
        let bits = u32::from(payload[at / 8]) << (at % 8) & 0xFF;
        writer.put(bits >> (8 - count), count as u32);
        at += count;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tautline_units::ByteCount;

    use super::*;
    use crate::avc::{Config, LossRecovery, StripEncoder};
    use crate::{Encoder, Picture, Refresh};

    fn config() -> Config {
        Config {
            width: 64,
            height: 32,
            cropped: [0, 0],
            pictures_per_second: 60,
            loss_recovery: LossRecovery::Idr,
            joinable: true,
        }
    }

    fn encoder(config: Config) -> StripEncoder {
        StripEncoder::new(config).unwrap()
    }

    fn idr(config: Config) -> Vec<u8> {
        code(&mut encoder(config), Refresh::Idr)
    }

    fn code(encoder: &mut StripEncoder, refresh: Refresh) -> Vec<u8> {
        let rows = Picture::new(64, 32).unwrap();
        encoder.encode(&rows, ByteCount::new(500), refresh).unwrap().bytes.to_vec()
    }

    fn shape() -> Shape {
        Shape::read(&idr(config())).unwrap()
    }

    #[test]
    fn incompatible_strips_are_refused_by_the_joiner() {
        let shape = shape();
        assert!(Joiner::new(&[]).is_err());
        let unlike = [
            Shape { contained: false, ..shape },
            Shape { columns: 5, ..shape },
            Shape { references: 2, ..shape },
            Shape { pictures_per_second: 30, ..shape },
            Shape { cropped: [0, 2], ..shape },
        ];
        for unlike in unlike {
            assert!(Joiner::new(&[unlike, shape]).is_err(), "{unlike:?}");
        }
        assert!(Joiner::new(&[shape, Shape { cropped: [0, 2], rows: 3, ..shape }]).is_ok());
        assert!(Joiner::new(&[Shape { rows: 512, ..shape }; 3]).is_err());
        assert!(Joiner::new(&[Shape { columns: 256, rows: 128, ..shape }; 2]).is_err());
        let mut joiner = Joiner::new(&[shape, shape]).unwrap();
        assert!(joiner.join(&[]).is_err());
        assert!(joiner.join(&[None, None]).is_err());
        assert!(joiner.join(&[Some(&[]), Some(&[])]).is_err());
    }

    #[test]
    fn a_slice_of_another_stream_counts_as_missing() {
        let (shape, ours) = (shape(), idr(config()));
        let mut encoder = encoder(config());
        let (begin, next) = (code(&mut encoder, Refresh::No), code(&mut encoder, Refresh::No));
        let refused = |units: [&[u8]; 2]| {
            let mut joiner = Joiner::new(&[shape, shape]).unwrap();
            joiner.join(&units.map(Some)).map(|joined| joined.refused)
        };
        assert!(matches!(refused([&begin, &ours]), Ok(0)));
        assert!(matches!(refused([&begin, &next]), Ok(1)));
        assert!(refused([&next, &next]).is_err());
        let swept =
            idr(Config { loss_recovery: LossRecovery::IntraRefresh { period: 4 }, ..config() });
        let unlike = [
            idr(Config { pictures_per_second: 30, ..config() }),
            idr(Config { joinable: false, ..config() }),
            // Two picture parameter sets in a picture.
            swept.clone(),
        ];
        for unlike in &unlike {
            assert!(matches!(refused([&ours, unlike]), Ok(1)));
        }
        assert!(matches!(refused([&swept, &swept]), Ok(0)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_joined_without_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..60),
            kind in prop_oneof![Just(0x65u8), Just(0x61)],
        ) {
            let (shape, ours) = (shape(), idr(config()));
            for begun in [false, true] {
                let mut joiner = Joiner::new(&[shape, shape]).unwrap();
                if begun {
                    joiner.join(&[Some(&ours), None]).unwrap();
                }
                let _ = joiner.join(&[Some(&bytes), Some(&bytes)]);
                bytes.splice(0..0, [0, 0, 1, kind]);
                let _ = joiner.join(&[Some(&bytes), None]);
                let _ = joiner.join(&[None, Some(&ours)]);
            }
        }
    }
}
