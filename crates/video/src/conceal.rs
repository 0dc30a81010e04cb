use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::h264::bits;
use crate::h264::nal::{self, NalUnit};
use crate::h264::parameters::{PictureOrder, PictureParameters, Sequence};
use crate::h264::slice_header::{self, SliceHeader};
use crate::layout::MACROBLOCK;
use crate::{Encoded, Error, Motion};

/// Loss concealment of one strip: its decoder receives a stream without gaps when slices are lost.
///
/// Every access unit that arrives passes through [`take`](Self::take), in picture order.
/// [`skip`](Self::skip) replaces every one that does not: a P slice in which every macroblock is
/// skipped, or continues the [motion](Self::moves_by) of the one before. The decoder (libavcodec,
/// openh264, WebCodecs) then receives a complete stream: no error, one picture out per picture in,
/// and none delayed. Without concealment, the loss of the one picture in which `frame_num` wraps
/// can stop a decoder for 30 pictures.
///
/// Pictures after a loss are predicted from a picture that never arrived, so the strip [is
/// corrupt](Self::is_corrupt) until the next IDR arrives, or a picture [known](Self::follows_from)
/// to depend on no lost picture.
#[derive(Clone, Default, Debug)]
pub struct Concealer {
    parameters: Parameters,
    stream: Option<Stream>,
}

impl Concealer {
    /// Creates a concealer before its first IDR.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses the headers of an access unit that arrived, for all further calls; changes nothing.
    ///
    /// # Errors
    /// Fails if the access unit is malformed, uses an unsupported part of H.264, or needs parameter
    /// sets that have not arrived. It must not be passed on.
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

    /// Takes the next access unit and returns the bytes for the decoder. An IDR makes the strip
    /// clean; a gap in `frame_num` or another sequence parameter set makes it corrupt.
    ///
    /// They are the same bytes unless the picture counts of encoder and receiver differ, because an
    /// IDR was lost, or because the receiver counted pictures as lost that were never coded. Then
    /// they are a copy with the `frame_num` that the decoder expects. `None` before the first IDR,
    /// where no decoder could start.
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

    /// Combines [`parse`](Self::parse) and [`take`](Self::take) for an access unit that needs no
    /// other call.
    ///
    /// # Errors
    /// As [`parse`](Self::parse); the strip's state is unchanged, so [`skip`](Self::skip) can
    /// replace the access unit.
    pub fn pass<'a>(&mut self, access_unit: &'a [u8]) -> Result<Option<Cow<'a, [u8]>>, Error> {
        let parsed = self.parse(access_unit)?;
        Ok(self.take(parsed))
    }

    /// Returns a skip slice's access unit, in place of a lost one: it repeats the strip as last
    /// shown. The strip is then corrupt.
    ///
    /// The first few after a picture with [known motion](Self::moves_by) continue that motion. Call
    /// it once for each picture that does not arrive; the next picture that arrives then continues
    /// after it. `None` before the first IDR.
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

    /// Returns the number of pictures missing between the last one and this access unit, by
    /// `frame_num`.
    ///
    /// 0 for an IDR and before the first one; 1 if the counts differ by more than 60, as after a
    /// lost IDR.
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

    /// Records the history of the picture last passed to [`take`](Self::take)
    /// ([`Encoded::history`]): if none of those pictures was lost, the strip is clean again.
    /// [`Encoded::LONG`] changes nothing.
    pub fn follows_from(&mut self, history: u8) {
        if let Some(stream) = &mut self.stream
            && history < Encoded::LONG
            && stream.unbroken > u32::from(history)
        {
            stream.corrupt = false;
        }
    }

    /// Records the motion of the picture last passed to [`take`](Self::take), which the next skip
    /// slices continue.
    pub fn moves_by(&mut self, motion: Motion) {
        if let Some(stream) = &mut self.stream {
            stream.motion = motion;
        }
    }

    /// Returns whether the strip is corrupt: it may differ from the encoder's picture.
    ///
    /// True before the first IDR, and from a loss until the encoder has recovered from it.
    pub fn is_corrupt(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.corrupt)
    }

    /// Returns the strip's coded width and height in pixels, from its parameter sets.
    ///
    /// `None` before the first IDR.
    pub fn size(&self) -> Option<(usize, usize)> {
        let sequence = &self.stream.as_ref()?.sequence;
        let columns = sequence.macroblock_columns;
        let rows = sequence.macroblock_count / columns;
        Some((columns as usize * MACROBLOCK, rows as usize * MACROBLOCK))
    }

    /// Returns the number of coded pixel columns at the right and rows at the bottom that are not
    /// shown.
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

/// An access unit with parsed headers.
#[derive(Clone, Debug)]
pub struct ParsedAccessUnit<'a> {
    access_unit: &'a [u8],
    units: Vec<NalUnit<'a>>,
    picture: CodedPicture,
    /// All known parameter sets including those in the access unit; `None` if it contains none.
    parameters: Option<Parameters>,
}

/// Maximum number of missing pictures, one second: more means that the encoder's picture numbers
/// restarted, and counts as one.
const MISSING_MAX: u32 = 60;

/// Maximum number of skip slices that continue a motion: beyond it, extrapolation is no better than
/// a still picture.
const MOVED_MAX: u32 = 4;

/// Parameter sets received so far.
#[derive(Clone, Default, Debug)]
struct Parameters {
    /// Sequence parameter sets by id, at most 32.
    sequences: BTreeMap<u32, Sequence>,
    /// Picture parameter sets by id, at most 256.
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

/// Properties of a picture from its access unit's slices.
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

/// State of a strip's stream since an IDR.
#[derive(Clone, Debug)]
struct Stream {
    sequence: Sequence,
    picture: PictureParameters,
    reference: u8,
    /// Numbers of the last picture in the encoder's count.
    coded: Numbers,
    /// Numbers of the last picture in the decoder's count.
    shown: Numbers,
    /// Difference of pic_order_cnt_lsb between consecutive pictures.
    order_step: u32,
    /// True if the last picture arrived; then `order_step` is set from the difference between its
    /// order and that of the next one.
    follows: bool,
    /// Number of consecutive pictures that arrived, up to the last one.
    unbroken: u32,
    /// Number of missing pictures since the last arrival.
    skipped: u32,
    /// Motion of the picture that arrived last; zero until it is known.
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

    /// Updates the state with an arrived picture that is not an IDR. After a gap in `frame_num`, or
    /// with another sequence parameter set, the strip becomes corrupt.
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

    /// Counts a missing picture, which makes the strip corrupt.
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

/// Picture counters in a slice header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Numbers {
    /// Value of `frame_num`.
    frame: u32,
    /// `pic_order_cnt_lsb`; 0 if the stream has none.
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

/// Returns a copy of an access unit whose slices have the numbers `shown`.
fn renumber(units: &[NalUnit<'_>], picture: &CodedPicture, shown: Numbers) -> Vec<u8> {
    let mut out = Vec::new();
    for unit in units {
        let mut payload = unit.payload();
        if is_slice(unit) {
            // Parse each slice: the number of its first macroblock shifts the fields after it.
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
