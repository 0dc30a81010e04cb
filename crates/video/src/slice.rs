use std::time::Duration;

use tautline_units::Instant;

use crate::{AccessUnit, Error, Layout, Motion};

/// Kind of a coded slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceKind {
    /// Intra-coded with its parameter sets, independent of earlier pictures.
    Idr,
    /// Predicted from an earlier picture of the strip.
    Predicted,
    /// Repetition of the previous picture in place of a lost slice, possibly shifted by its motion.
    Skip,
}

impl SliceKind {
    /// Returns the kind's number on the wire: 0 IDR, 1 predicted, 2 skip.
    pub const fn number(self) -> u8 {
        match self {
            Self::Idr => 0,
            Self::Predicted => 1,
            Self::Skip => 2,
        }
    }

    /// Returns the kind with this number on the wire; `None` for any other number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Idr),
            1 => Some(Self::Predicted),
            2 => Some(Self::Skip),
            _ => None,
        }
    }
}

/// One coded picture of one strip, with the metadata for the receiver.
///
/// Wire format as passed to transport, all numbers big-endian:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +---------------+---------------+---------------+---------------+
/// |  version = 3  |     kind      |     strip     |    history    |
/// +---------------+---------------+---------------+---------------+
/// |                            picture                            |
/// +---------------------------------------------------------------+
/// |                 captured_at, ns, vehicle clock                |
/// |                                                               |
/// +---------------------------------------------------------------+
/// |       encoded_at - captured_at, ns, at most 2^32 - 1          |
/// +---------------------------------------------------------------+
/// |                      length of the bytes                      |
/// +---------------------------------------------------------------+
/// |               the guard's tick, 0 if not known                |
/// +-------------------------------+-------------------------------+
/// |  motion across, i16, quarters |      motion down, i16         |
/// +-------------------------------+-------------------------------+
/// |                      Annex B bytes ...                        |
/// +---------------------------------------------------------------+
/// ```
///
/// A history of n pictures is written as n + 1, an unknown one as 0.
///
/// The length reveals a truncated unit: it is an error and never reaches a decoder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice {
    /// Number of the picture, counted by the camera from zero.
    pub picture: u32,
    /// Number of the strip, from the top.
    pub strip: u8,
    /// Kind of the slice.
    pub kind: SliceKind,
    /// Number of preceding slices of the strip that it depends on, as
    /// [`Encoded::history`](crate::Encoded::history).
    pub history: Option<u8>,
    /// Start of the strip's readout on the vehicle's clock.
    pub captured_at: Instant,
    /// End of the strip's encoding on the vehicle's clock.
    ///
    /// The wire format limits it to 4.29 s after `captured_at`.
    pub encoded_at: Instant,
    /// Newest tick of the vehicle's guard at the start of the picture; a person who has seen the
    /// picture cites it. 0 if the vehicle knew none.
    pub tick: u32,
    /// Motion of the strip, as [`Encoded::motion`](crate::Encoded::motion).
    pub motion: Motion,
    /// The access unit; an IDR begins with its parameter sets.
    pub bytes: AccessUnit,
}

impl Slice {
    /// Length in bytes of the header before the Annex B bytes.
    pub const HEADER_BYTES: usize = AccessUnit::ROOM;

    /// Returns the header followed by the Annex B bytes, which are not copied.
    ///
    /// # Panics
    /// If the Annex B bytes are 4 GiB or more.
    pub fn into_unit(self) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).expect("a coded slice is far below 4 GiB");
        let encoding = self.encoded_at.since(self.captured_at).as_nanos();
        let encoding = u32::try_from(encoding).unwrap_or(u32::MAX);
        let history = self.history.map_or(0, |pictures| pictures.saturating_add(1));
        let mut header = [0; Self::HEADER_BYTES];
        header[..4].copy_from_slice(&[VERSION, self.kind.number(), self.strip, history]);
        header[4..8].copy_from_slice(&self.picture.to_be_bytes());
        header[8..16].copy_from_slice(&self.captured_at.as_nanos().to_be_bytes());
        header[16..20].copy_from_slice(&encoding.to_be_bytes());
        header[20..24].copy_from_slice(&length.to_be_bytes());
        header[24..28].copy_from_slice(&self.tick.to_be_bytes());
        header[28..30].copy_from_slice(&self.motion.x.to_be_bytes());
        header[30..].copy_from_slice(&self.motion.y.to_be_bytes());
        self.bytes.behind(header)
    }

    /// Parses the output of [`into_unit`](Self::into_unit), and keeps its buffer.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the header or the Annex B bytes are truncated; [`Error::Invalid`]
    /// for an unknown version, kind or strip, for missing Annex B bytes, or for bytes after them.
    pub fn parse(unit: Vec<u8>) -> Result<Self, Error> {
        let Some((header, bytes)) = unit.split_first_chunk::<{ Self::HEADER_BYTES }>() else {
            return Err(Error::Truncated { what: "slice header" });
        };
        let [version, kind, strip, history, p0, p1, p2, p3, rest @ ..] = *header;
        let [c0, c1, c2, c3, c4, c5, c6, c7, e0, e1, e2, e3, l0, l1, l2, l3, rest @ ..] = rest;
        let [t0, t1, t2, t3, x0, x1, y0, y1] = rest;
        if version != VERSION {
            return Err(Error::Invalid { what: "slice version", value: u64::from(version) });
        }
        let kind = SliceKind::from_number(kind)
            .ok_or(Error::Invalid { what: "slice kind", value: u64::from(kind) })?;
        if usize::from(strip) >= Layout::STRIP_COUNT {
            return Err(Error::Invalid { what: "strip", value: u64::from(strip) });
        }
        let length = u32::from_be_bytes([l0, l1, l2, l3]);
        let present = bytes.len() as u64;
        if present < u64::from(length) {
            return Err(Error::Truncated { what: "slice" });
        }
        if length == 0 || present > u64::from(length) {
            return Err(Error::Invalid { what: "slice length", value: present });
        }
        let captured_at = Instant::from_nanos(u64::from_be_bytes([c0, c1, c2, c3, c4, c5, c6, c7]));
        let encoding = Duration::from_nanos(u64::from(u32::from_be_bytes([e0, e1, e2, e3])));
        let bytes = AccessUnit::in_buffer(unit).ok_or(Error::Truncated { what: "slice header" })?;
        Ok(Self {
            picture: u32::from_be_bytes([p0, p1, p2, p3]),
            strip,
            kind,
            history: history.checked_sub(1),
            captured_at,
            encoded_at: captured_at + encoding,
            tick: u32::from_be_bytes([t0, t1, t2, t3]),
            motion: Motion { x: i16::from_be_bytes([x0, x1]), y: i16::from_be_bytes([y0, y1]) },
            bytes,
        })
    }
}

/// Version of the wire format.
const VERSION: u8 = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Encoded;

    fn example() -> Slice {
        Slice {
            picture: 0x0102_0304,
            strip: 5,
            kind: SliceKind::Predicted,
            history: Some(7),
            captured_at: Instant::from_nanos(0x1112_1314_1516_1718),
            encoded_at: Instant::from_nanos(0x1112_1314_1516_1718 + 0x2122_2324),
            tick: 0x3132_3334,
            motion: Motion { x: 0x4142, y: -2 },
            bytes: AccessUnit::from(&[0, 0, 0, 1, 0x41][..]),
        }
    }

    #[test]
    fn the_wire_form_is_as_drawn() {
        let expected = [
            3, 1, 5, 8, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22,
            0x23, 0x24, 0, 0, 0, 5, 0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0xFF, 0xFE, 0, 0, 0, 1,
            0x41,
        ];
        assert_eq!(example().into_unit(), expected);
    }

    #[test]
    fn a_cut_or_lengthened_unit_is_refused() {
        let bytes = example().into_unit();
        for length in 0..bytes.len() {
            let cut = bytes[..length].to_vec();
            assert!(matches!(Slice::parse(cut), Err(Error::Truncated { .. })));
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(matches!(Slice::parse(longer), Err(Error::Invalid { .. })));
    }

    proptest! {
        #[test]
        fn slices_round_trip(
            picture: u32,
            strip in 0u8..6,
            kind in 0u8..3,
            captured in 0u64..u64::MAX / 2,
            encoding: u32,
            tick: u32,
            motion: (i16, i16),
            history in proptest::option::of(0..=Encoded::LONG),
            bytes in proptest::collection::vec(any::<u8>(), 1..200),
        ) {
            let captured_at = Instant::from_nanos(captured);
            let slice = Slice {
                picture,
                strip,
                kind: SliceKind::from_number(kind).unwrap(),
                history,
                captured_at,
                encoded_at: captured_at + Duration::from_nanos(u64::from(encoding)),
                tick,
                motion: Motion { x: motion.0, y: motion.1 },
                bytes: AccessUnit::from(bytes.as_slice()),
            };
            prop_assert_eq!(Slice::parse(slice.clone().into_unit()).unwrap(), slice);
        }

        #[test]
        fn any_bytes_parse_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Slice::parse(bytes);
        }
    }
}
