use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::h264::bits;
use crate::h264::nal::{self, NalUnit};
use crate::h264::parameters::{PictureOrder, PictureParameters, Sequence};
use crate::h264::slice_header::{self, SliceHeader};
use crate::layout::MACROBLOCK;
use crate::{Encoded, Error, Motion};

/// Loss concealment of one strip: a stream without holes for its decoder when slices are lost.
///
/// Every access unit that arrives goes through [`take`](Self::take), in picture order, and every
/// one that does not is replaced by [`skip`](Self::skip): a P slice in which every macroblock is
/// skipped, or moved on as the one before [moved](Self::moves_by). The decoder (libavcodec, openh264,
/// WebCodecs) then sees a complete stream: no error, a picture out for each one in, and none held
/// back. Without it, the loss of the one picture in which `frame_num` wraps can stop a decoder for
/// 30 pictures.
///
/// What follows a loss is predicted from a picture that never came, so the strip
/// [is corrupt](Self::is_corrupt) until the next IDR arrives, or a picture of which it is
/// [known](Self::follows_from) that nothing it follows from was lost.
#[derive(Clone, Default, Debug)]
pub struct Concealer {
    parameters: Parameters,
    stream: Option<Stream>,
}

impl Concealer {
    /// Makes a concealer that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the headers of an access unit that arrived, once for all that is asked of it.
    ///
    /// # Errors
    /// If the access unit is malformed, or uses a part of H.264 that is not supported, or needs
    /// parameter sets that have not come. It must not be handed on.
    pub fn parse<'a>(&self, access_unit: &'a [u8]) -> Result<ParsedAccessUnit<'a>, Error> {
        let units = nal::split(access_unit)?;
        let mut parameters = Cow::Borrowed(&self.parameters);
        for unit in &units {
            match unit.kind() {
                nal::kind::SEQUENCE_PARAMETERS | nal::kind::PICTURE_PARAMETERS => {
                    parameters.to_mut().take(unit)?;
                }
                _ => {}
            }
        }
        let picture = CodedPicture::read(&units, &parameters)?;
        let parameters = match parameters {
            Cow::Borrowed(_) => None,
            Cow::Owned(parameters) => Some(parameters),
        };
        Ok(ParsedAccessUnit { access_unit, units, picture, parameters })
    }

    /// Takes the next access unit and gives the bytes to hand to the decoder.
    ///
    /// They are the same bytes, unless the encoder's count of pictures and the receiver's have come
    /// apart (an IDR was lost, or pictures were never coded that the receiver took for lost): then
    /// the access unit is a copy with the `frame_num` that the decoder expects. `None` before the
    /// first IDR: no decoder could begin there.
    pub fn take<'a>(&mut self, parsed: ParsedAccessUnit<'a>) -> Option<Cow<'a, [u8]>> {
        let ParsedAccessUnit { access_unit, units, picture, parameters } = parsed;
        if let Some(parameters) = parameters {
            self.parameters = parameters;
        }
        if picture.is_idr {
            self.stream = Some(Stream::begin(picture));
            return Some(Cow::Borrowed(access_unit));
        }
        let stream = self.stream.as_mut()?;
        stream.continue_with(&picture);
        if stream.shown == Numbers::of(&picture.header) {
            return Some(Cow::Borrowed(access_unit));
        }
        Some(Cow::Owned(renumber(&units, &picture, stream.shown)))
    }

    /// Does [`parse`](Self::parse) and [`take`](Self::take) for an access unit of which nothing
    /// else is asked.
    ///
    /// # Errors
    /// As [`parse`](Self::parse); the strip is in the state before, so that [`skip`](Self::skip) can
    /// take the place of the access unit.
    pub fn pass<'a>(&mut self, access_unit: &'a [u8]) -> Result<Option<Cow<'a, [u8]>>, Error> {
        let parsed = self.parse(access_unit)?;
        Ok(self.take(parsed))
    }

    /// Returns an access unit that repeats the strip as it was last shown, in place of a lost one.
    ///
    /// The first few after a picture of which it is [known](Self::moves_by) go on with its motion.
    /// To be called once for each picture that does not come; the next picture that does then
    /// continues after it. `None` before the first IDR.
    pub fn skip(&mut self) -> Option<Vec<u8>> {
        let stream = self.stream.as_mut()?;
        stream.step_over();
        let motion = match stream.skipped <= MOVED_MAX {
            true => stream.motion,
            false => Motion::default(),
        };
        Some(slice_header::write_skip(
            stream.reference,
            stream.shown.frame,
            stream.shown.order,
            &stream.sequence,
            &stream.picture,
            motion,
        ))
    }

    /// Counts the pictures that are missing between the last one and this access unit, by its
    /// `frame_num`.
    ///
    /// 0 for an IDR and before the first one; 1 where the count has come apart by more than 60, as
    /// after a lost IDR.
    pub fn missing_before(&self, parsed: &ParsedAccessUnit<'_>) -> u32 {
        let Some(stream) = self.stream.as_ref().filter(|_| !parsed.picture.is_idr) else {
            return 0;
        };
        let expected = stream.next(stream.coded, stream.order_step);
        let came = Numbers::of(&parsed.picture.header);
        let frame_mask = (1 << stream.sequence.frame_number_bits) - 1;
        let missing = came.frame.wrapping_sub(expected.frame) & frame_mask;
        if missing > MISSING_MAX { 1 } else { missing }
    }

    /// Takes note of the history of the picture that [`take`](Self::take) took last
    /// ([`Encoded::history`]): where none of those was lost, the strip is clean again.
    pub fn follows_from(&mut self, history: u8) {
        if let Some(stream) = &mut self.stream
            && history < Encoded::LONG
            && stream.unbroken > u32::from(history)
        {
            stream.corrupt = false;
        }
    }

    /// Takes note of how the picture that [`take`](Self::take) took last moves.
    pub fn moves_by(&mut self, motion: Motion) {
        if let Some(stream) = &mut self.stream {
            stream.motion = motion;
        }
    }

    /// Returns whether the strip is corrupt: it may differ from what the encoder has.
    ///
    /// True before the first IDR and from a loss until the encoder has recovered from it.
    pub fn is_corrupt(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.corrupt)
    }

    /// Returns the strip's width and height in pixels as it is coded, as its parameter sets tell them.
    ///
    /// `None` before the first IDR.
    pub fn size(&self) -> Option<(usize, usize)> {
        let sequence = &self.stream.as_ref()?.sequence;
        let columns = sequence.macroblock_columns;
        let rows = sequence.macroblock_count / columns;
        Some((columns as usize * MACROBLOCK, rows as usize * MACROBLOCK))
    }

    /// Returns how many of the pixels in a row and of the rows are not to be shown, at the right and below.
    ///
    /// `None` before the first IDR.
    pub fn cropped(&self) -> Option<[usize; 2]> {
        Some(self.stream.as_ref()?.sequence.cropped.map(|side| side as usize))
    }

    /// Returns the strip's codec string for WebCodecs and MSE (RFC 6381), such as `avc1.42C01F`.
    ///
    /// `None` before the first IDR.
    pub fn codec(&self) -> Option<String> {
        let [profile, constraints, level] = self.stream.as_ref()?.sequence.profile;
        Some(format!("avc1.{profile:02X}{constraints:02X}{level:02X}"))
    }
}

/// An access unit whose headers have been read.
#[derive(Clone, Debug)]
pub struct ParsedAccessUnit<'a> {
    access_unit: &'a [u8],
    units: Vec<NalUnit<'a>>,
    picture: CodedPicture,
    /// All that are known with those that it brings, if it brings any.
    parameters: Option<Parameters>,
}

/// A second of pictures: more missing than this means that the count began anew.
const MISSING_MAX: u32 = 60;

/// What is made up for longer than so many pictures is no better than what stands still.
const MOVED_MAX: u32 = 4;

/// The parameter sets that have come.
#[derive(Clone, Default, Debug)]
struct Parameters {
    /// At most 32, by their numbers.
    sequences: BTreeMap<u32, Sequence>,
    /// At most 256, by their numbers.
    pictures: BTreeMap<u32, PictureParameters>,
}

impl Parameters {
    fn take(&mut self, unit: &NalUnit<'_>) -> Result<(), Error> {
        if unit.kind() == nal::kind::SEQUENCE_PARAMETERS {
            let sequence = Sequence::parse(&unit.payload())?;
            self.sequences.insert(sequence.id, sequence);
        } else {
            let picture = PictureParameters::parse(&unit.payload())?;
            self.pictures.insert(picture.id, picture);
        }
        Ok(())
    }

    fn for_slice(&self, unit: &NalUnit<'_>) -> Result<(&Sequence, &PictureParameters), Error> {
        let start = unit.payload_start(slice_header::START_BYTES);
        let id = SliceHeader::parameters_id(&start)?;
        let picture =
            self.pictures.get(&id).ok_or(Error::MissingParameters { set: "picture", id })?;
        let sequence = self
            .sequences
            .get(&picture.sequence_id)
            .ok_or(Error::MissingParameters { set: "sequence", id: picture.sequence_id })?;
        Ok((sequence, picture))
    }
}

/// Facts of a picture that its access unit's slices tell.
#[derive(Clone, Debug)]
struct CodedPicture {
    is_idr: bool,
    reference: u8,
    header: SliceHeader,
    sequence: Sequence,
    parameters: PictureParameters,
}

impl CodedPicture {
    fn read(units: &[NalUnit<'_>], parameters: &Parameters) -> Result<Self, Error> {
        let mut picture: Option<Self> = None;
        for unit in units.iter().filter(|unit| is_slice(unit)) {
            let (sequence, pps) = parameters.for_slice(unit)?;
            let header = slice_header::read(unit, sequence)?;
            let is_idr = unit.kind() == nal::kind::IDR_SLICE;
            match &picture {
                None if header.first_macroblock != 0 => {
                    return Err(Error::Truncated { what: "access unit" });
                }
                None => {
                    if unit.reference() == 0 {
                        return Err(Error::Unsupported { what: "a picture without reference" });
                    }
                    picture = Some(Self {
                        is_idr,
                        reference: unit.reference(),
                        header,
                        sequence: sequence.clone(),
                        parameters: pps.clone(),
                    });
                }
                Some(first) => {
                    let same = is_idr == first.is_idr
                        && header.picture_parameters_id == first.parameters.id
                        && Numbers::of(&header) == Numbers::of(&first.header);
                    if !same || header.first_macroblock == 0 {
                        return Err(Error::Unsupported { what: "two pictures at once" });
                    }
                }
            }
        }
        picture.ok_or(Error::Truncated { what: "access unit" })
    }
}

/// A strip's stream from an IDR on.
#[derive(Clone, Debug)]
struct Stream {
    sequence: Sequence,
    picture: PictureParameters,
    reference: u8,
    /// The last picture as its encoder numbers it.
    coded: Numbers,
    /// The last picture as its decoder was told.
    shown: Numbers,
    /// The difference of pic_order_cnt_lsb between one picture and the next.
    order_step: u32,
    /// Whether the last picture came, so that the next one's order tells the step.
    follows: bool,
    /// Pictures that came in a row, up to the last one.
    unbroken: u32,
    /// Pictures that did not come, since the last one.
    skipped: u32,
    /// How the last one moves.
    motion: Motion,
    corrupt: bool,
}

impl Stream {
    fn begin(picture: CodedPicture) -> Self {
        let numbers = Numbers::of(&picture.header);
        Self {
            sequence: picture.sequence,
            picture: picture.parameters,
            reference: picture.reference,
            coded: numbers,
            shown: numbers,
            order_step: 2,
            follows: true,
            unbroken: 1,
            skipped: 0,
            motion: Motion::default(),
            corrupt: false,
        }
    }

    /// Takes a picture that is not an IDR.
    fn continue_with(&mut self, picture: &CodedPicture) {
        let came = Numbers::of(&picture.header);
        let same_format = picture.sequence == self.sequence;
        let expected = self.next(self.coded, self.order_step);
        self.unbroken = self.unbroken.saturating_add(1);
        (self.skipped, self.motion) = (0, Motion::default());
        if came.frame != expected.frame || !same_format {
            (self.unbroken, self.corrupt) = (1, true);
        } else if self.follows {
            self.order_step = came.order.wrapping_sub(self.coded.order) & self.order_mask();
        }
        self.coded = came;
        self.shown = self.next(self.shown, self.order_step);
        self.picture = picture.parameters.clone();
        self.reference = picture.reference;
        self.follows = true;
    }

    /// Counts a picture that did not come.
    fn step_over(&mut self) {
        self.coded = self.next(self.coded, self.order_step);
        self.shown = self.next(self.shown, self.order_step);
        self.follows = false;
        (self.unbroken, self.corrupt) = (0, true);
        self.skipped = self.skipped.saturating_add(1);
    }

    fn next(&self, numbers: Numbers, order_step: u32) -> Numbers {
        let frame_mask = (1 << self.sequence.frame_number_bits) - 1;
        Numbers {
            frame: (numbers.frame + 1) & frame_mask,
            order: numbers.order.wrapping_add(order_step) & self.order_mask(),
        }
    }

    fn order_mask(&self) -> u32 {
        match self.sequence.order {
            PictureOrder::LowBits(bits) => (1 << bits) - 1,
            PictureOrder::Differences { .. } | PictureOrder::Decoding => 0,
        }
    }
}

/// Numbers by which a slice header counts its picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Numbers {
    /// frame_num
    frame: u32,
    /// pic_order_cnt_lsb, or 0 where there is none.
    order: u32,
}

impl Numbers {
    fn of(header: &SliceHeader) -> Self {
        Self { frame: header.frame_number, order: header.order.map_or(0, |(low_bits, _)| low_bits) }
    }
}

fn is_slice(unit: &NalUnit<'_>) -> bool {
    matches!(unit.kind(), nal::kind::SLICE | nal::kind::IDR_SLICE)
}

/// Returns a copy of an access unit whose slices carry `shown` as their numbers.
fn renumber(units: &[NalUnit<'_>], picture: &CodedPicture, shown: Numbers) -> Vec<u8> {
    let mut out = Vec::new();
    for unit in units {
        let mut payload = unit.payload();
        if is_slice(unit) {
            // Each slice is read anew: its first macroblock's number shifts the fields after it.
            if let Ok(header) = SliceHeader::parse(&payload, unit.kind(), &picture.sequence) {
                let bits = picture.sequence.frame_number_bits;
                bits::overwrite(&mut payload, header.frame_number_position, bits, shown.frame);
                if let (Some((_, position)), PictureOrder::LowBits(bits)) =
                    (header.order, &picture.sequence.order)
                {
                    bits::overwrite(&mut payload, position, *bits, shown.order);
                }
            }
        }
        nal::write(unit.header(), &payload, &mut out);
    }
    out
}

#[cfg(test)]
mod tests;
