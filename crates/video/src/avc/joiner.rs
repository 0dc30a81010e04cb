use super::bits::BitWriter;
use super::encoder::Config;
use super::headers::{FRAME_NUMBER_BITS, Header, Shape};
use crate::h264::bits::Reader;
use crate::h264::nal::{self, NalUnit};
use crate::{Error, SliceKind};

/// Makes one standard picture of several slices out of the slices of strips, for recordings and
/// ordinary players.
///
/// The slices' data stay as they are; their headers are written anew, with the number of their first
/// macroblock. That is right because nothing in a slice depends on where it lies: neither prediction
/// nor deblocking crosses its edge, and the vectors of encoders with
/// [`Config::joinable`] do not either.
#[derive(Clone, Debug)]
pub struct Joiner {
    shape: Shape,
    /// The first macroblock of each strip.
    firsts: Vec<u32>,
    number: u16,
    idr_id: u16,
    begun: bool,
}

impl Joiner {
    /// A joiner of strips as high as `heights` (pixels, from the top), of encoders set up as
    /// `strip`; `cropped` applies to the whole picture.
    ///
    /// # Errors
    /// [`Error::Dimensions`] unless all heights are multiples of 16, at least one, and a level has
    /// the picture; [`Error::Unsupported`] if the strips are not joinable.
    pub fn new(strip: &Config, heights: &[usize]) -> Result<Self, Error> {
        if !strip.joinable {
            return Err(Error::Unsupported { what: "joining strips whose vectors leave them" });
        }
        let height = heights.iter().sum();
        crate::Picture::new(strip.width, height)?;
        if let Some(&height) = heights.iter().find(|height| !height.is_multiple_of(16)) {
            return Err(Error::Dimensions { width: strip.width, height });
        }
        let (columns, rows) = (strip.width / 16, height / 16);
        let mut firsts = Vec::with_capacity(heights.len());
        let mut first = 0;
        for height in heights {
            firsts.push(first);
            first += (height / 16 * columns) as u32;
        }
        let shape = Shape {
            columns,
            rows,
            cropped: strip.cropped,
            pictures_per_second: strip.pictures_per_second,
            references: strip.healing.references(),
        };
        shape.level()?;
        Ok(Self { shape, firsts, number: 0, idr_id: 0, begun: false })
    }

    /// Joins the strips' access units of one picture, from the top.
    ///
    /// The picture is an IDR if all strips are; otherwise strips that begin anew become I slices.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless there is one for each strip; [`Error::Truncated`] or others if they
    /// cannot be read; [`Error::Unsupported`] if they name different picture parameter sets, which
    /// encoders of one [`Config`] never do; [`Error::MissingParameters`] before the first IDR of all
    /// strips.
    pub fn join(&mut self, strips: &[&[u8]]) -> Result<(SliceKind, Vec<u8>), Error> {
        if strips.len() != self.firsts.len() {
            return Err(Error::Invalid { what: "strips", value: strips.len() as u64 });
        }
        let slices = strips.iter().map(|bytes| read(bytes)).collect::<Result<Vec<_>, _>>()?;
        // The standard allows two; openh264 and the receiver's concealer do not.
        if slices.iter().any(|(header, ..)| header.constrained != slices[0].0.constrained) {
            return Err(Error::Unsupported { what: "two picture parameter sets in a picture" });
        }
        let idr = slices.iter().all(|(header, ..)| header.idr.is_some());
        if !idr && !self.begun {
            return Err(Error::MissingParameters { set: "sequence", id: 0 });
        }
        let mut bytes = Vec::new();
        if idr {
            self.shape.write_sets(&mut bytes)?;
            self.number = 0;
            self.begun = true;
        }
        let mut writer = BitWriter::default();
        for ((header, payload, position), &first) in slices.iter().zip(&self.firsts) {
            let header = Header {
                first,
                idr: idr.then_some(self.idr_id),
                number: self.number,
                mixed: true,
                ..*header
            };
            writer.clear();
            header.write(&mut writer);
            copy_bits(&mut writer, payload, *position);
            nal::write(header.unit_header(), writer.finish(), &mut bytes);
        }
        if idr {
            self.idr_id = 1 - self.idr_id;
        }
        self.number = self.number.wrapping_add(1);
        Ok((if idr { SliceKind::Idr } else { SliceKind::Predicted }, bytes))
    }
}

/// The slice of an access unit: its header, its payload, and the bit after the header.
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

/// Reads a header as [`Header::write`] writes it.
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
    let mut back = 0;
    if predicted {
        if reader.bit()? {
            return Err(Error::Unsupported { what: "a number of references of its own" });
        }
        if reader.bit()? {
            let kind = reader.at_most(3, "modification_of_pic_nums_idc")?;
            back = reader.at_most(15, "abs_diff_pic_num_minus1")?;
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
    let header =
        Header { first, idr, predicted, constrained, number, back, qp, deblocked, mixed: false };
    Ok((header, reader.position()))
}

/// Copies all bits from `position` up to the stop bit.
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

    use super::*;
    use crate::avc::Healing;

    fn config() -> Config {
        Config {
            width: 64,
            height: 32,
            cropped: [0, 0],
            pictures_per_second: 60,
            healing: Healing::Idr,
            joinable: true,
        }
    }

    #[test]
    fn what_cannot_be_joined_is_refused() {
        assert!(Joiner::new(&Config { joinable: false, ..config() }, &[32, 32]).is_err());
        assert!(Joiner::new(&config(), &[]).is_err());
        assert!(Joiner::new(&config(), &[24, 24]).is_err());
        assert!(Joiner::new(&config(), &[8192, 8192]).is_err());
        let mut joiner = Joiner::new(&config(), &[32, 32]).unwrap();
        assert!(joiner.join(&[]).is_err());
        assert!(joiner.join(&[&[], &[]]).is_err());
    }

    #[test]
    fn strips_that_name_two_parameter_sets_are_refused() {
        // IDRs that differ in the bits of pic_parameter_set_id alone: 1 and 010.
        let (first, second) =
            ([0, 0, 1, 0x65, 0xB8, 0, 4, 0xA8], [0, 0, 1, 0x65, 0xB4, 0, 1, 0x2A]);
        let mut joiner = Joiner::new(&config(), &[32, 32]).unwrap();
        assert!(joiner.join(&[&first, &second]).is_err());
        assert!(joiner.join(&[&first, &first]).is_ok());
        assert!(joiner.join(&[&second, &second]).is_ok());
    }

    proptest! {
        #[test]
        fn any_bytes_are_joined_without_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..60),
            kind in prop_oneof![Just(0x65u8), Just(0x61)],
        ) {
            let mut joiner = Joiner::new(&config(), &[32, 32]).unwrap();
            let _ = joiner.join(&[&bytes, &bytes]);
            bytes.splice(0..0, [0, 0, 1, kind]);
            let _ = joiner.join(&[&bytes, &bytes]);
        }
    }
}
