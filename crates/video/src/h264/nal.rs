//! NAL units in a byte stream (7.3.1, Annex B).

use crate::Error;

/// Values of nal_unit_type (table 7-1) in a strip's stream.
pub(crate) mod kind {
    pub(crate) const SLICE: u8 = 1;
    pub(crate) const IDR_SLICE: u8 = 5;
    pub(crate) const SEQUENCE_PARAMETERS: u8 = 7;
    pub(crate) const PICTURE_PARAMETERS: u8 = 8;
}

/// A NAL unit as in the byte stream, with its emulation prevention bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NalUnit<'a> {
    bytes: &'a [u8],
}

impl<'a> NalUnit<'a> {
    /// Returns nal_unit_type: 1 to 31.
    pub(crate) fn kind(&self) -> u8 {
        self.bytes[0] & 0x1F
    }

    /// Returns nal_ref_idc: 0 if no later picture may refer to this one.
    pub(crate) fn reference(&self) -> u8 {
        self.bytes[0] >> 5
    }

    /// Returns the NAL unit's header byte.
    pub(crate) fn header(&self) -> u8 {
        self.bytes[0]
    }

    /// Returns whether the unit has fewer bytes than `count`, header included.
    pub(crate) fn is_shorter_than(&self, count: usize) -> bool {
        self.bytes.len() < count
    }

    /// Returns the raw byte sequence payload: the bytes after the header, without emulation
    /// prevention.
    pub(crate) fn payload(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(self.bytes.len());
        let mut zeros = 0;
        for &byte in &self.bytes[1..] {
            if zeros >= 2 && byte == 3 {
                zeros = 0;
                continue;
            }
            zeros = if byte == 0 { zeros + 1 } else { 0 };
            payload.push(byte);
        }
        payload
    }

    /// Returns the start of the payload: what the unit's first `count` bytes contain, without
    /// header and emulation prevention.
    ///
    /// A slice header is parsed from it without a copy of the complete slice.
    pub(crate) fn payload_start(&self, count: usize) -> Vec<u8> {
        let end = self.bytes.len().min(count.max(1));
        NalUnit { bytes: &self.bytes[..end] }.payload()
    }
}

/// Splits an access unit into its NAL units.
///
/// # Errors
/// Fails for bytes before the first start code; an empty NAL unit; one with its forbidden bit set,
/// of type 0, or without an end (7.4.1: a NAL unit never ends with a zero byte); no NAL unit at
/// all.
pub(crate) fn split(access_unit: &[u8]) -> Result<Vec<NalUnit<'_>>, Error> {
    let starts = start_codes(access_unit);
    let Some(&(first, _)) = starts.first() else {
        return Err(Error::Truncated { what: "access unit" });
    };
    if access_unit[..first].iter().any(|&byte| byte != 0) {
        return Err(Error::Invalid { what: "bytes before a start code", value: first as u64 });
    }
    let mut units = Vec::with_capacity(starts.len());
    for (index, &(_, begin)) in starts.iter().enumerate() {
        let last = index + 1 == starts.len();
        let end = starts.get(index + 1).map_or(access_unit.len(), |&(start, _)| start);
        let mut bytes = &access_unit[begin..end];
        // Zero bytes before a start code belong to the byte stream (B.1.1), not to the NAL unit.
        while let ([rest @ .., 0], false) = (bytes, last) {
            bytes = rest;
        }
        let (Some(&header), Some(&end)) = (bytes.first(), bytes.last()) else {
            return Err(Error::Truncated { what: "NAL unit" });
        };
        if header & 0x80 != 0 || header & 0x1F == 0 {
            return Err(Error::Invalid { what: "NAL unit header", value: u64::from(header) });
        }
        // An emulation prevention byte is last only after the zero words of CABAC.
        if bytes.len() < 2 || end == 0 || bytes.ends_with(&[0, 0, 3]) {
            return Err(Error::Truncated { what: "NAL unit" });
        }
        units.push(NalUnit { bytes });
    }
    Ok(units)
}

/// Appends a NAL unit with its start code, adding emulation prevention to the payload.
pub(crate) fn write(header: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0, 0, 1, header]);
    let mut zeros = 0;
    for &byte in payload {
        if zeros >= 2 && byte <= 3 {
            out.push(3);
            zeros = 0;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        out.push(byte);
    }
}

/// Returns the positions of each start code (its three bytes 0, 0, 1): of its first byte, and of
/// the byte after it.
fn start_codes(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut starts = Vec::new();
    let mut at = 0;
    while at + 3 <= bytes.len() {
        match (bytes[at], bytes[at + 1], bytes[at + 2]) {
            (0, 0, 1) => {
                starts.push((at, at + 3));
                at += 3;
            }
            (_, _, 2..) => at += 3,
            (_, 1.., _) => at += 2,
            (_, 0, _) => at += 1,
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_access_unit_is_cut_at_its_start_codes() {
        let bytes = [0, 0, 0, 1, 0x67, 9, 0, 0, 1, 0x68, 8, 0, 0, 0, 1, 0x65, 0, 0, 3, 1];
        let units = split(&bytes).unwrap();
        let kinds: Vec<u8> = units.iter().map(NalUnit::kind).collect();
        assert_eq!(kinds, [7, 8, 5]);
        assert_eq!(units[2].payload(), [0, 0, 1]);
        assert_eq!(units[1].payload(), [8]);
    }

    #[test]
    fn malformed_access_units_are_refused() {
        let malformed: [&[u8]; 10] = [
            &[0, 0, 1, 0x41, 1, 0, 0, 3],
            &[],
            &[0, 0],
            &[0, 0, 1],
            &[0, 0, 1, 0x65],
            &[5, 0, 0, 1, 0x65, 1],
            &[0, 0, 1, 0xE5, 1],
            &[0, 0, 1, 0x60, 1],
            &[0, 0, 1, 0x65, 1, 0],
            &[0, 0, 1, 0, 0, 1, 0x65, 1],
        ];
        for bytes in malformed {
            assert!(split(bytes).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn written_nal_units_are_split_and_read_back(
            mut payload in proptest::collection::vec(0u8..5, 1..300),
        ) {
            payload.push(0x80);
            let mut stream = Vec::new();
            write(0x41, &payload, &mut stream);
            write(0x65, &payload, &mut stream);
            let units = split(&stream).unwrap();
            prop_assert_eq!(units.len(), 2);
            for unit in units {
                prop_assert_eq!(unit.payload(), payload.clone());
            }
        }

        #[test]
        fn any_bytes_are_cut_without_panic(bytes in proptest::collection::vec(0u8..5, 0..60)) {
            for unit in split(&bytes).unwrap_or_default() {
                let _ = (unit.kind(), unit.reference(), unit.payload(), unit.payload_start(5));
            }
        }
    }
}
