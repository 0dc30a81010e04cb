use super::malformed::Malformed;

/// A deframer: extracts datagrams from the bytes of a stream, however they are segmented.
///
/// ```text
///  byte 0          2
/// +---------------+---------------------- ..
/// | length        | datagram, 1 to 1500 bytes
/// +---------------+---------------------- ..
/// ```
///
/// Holds at most one datagram plus the bytes of the last push, if all datagrams are taken after
/// each push.
// protocol 9
#[derive(Debug, Clone, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Number of bytes at the start of `bytes` that were already returned.
    taken: usize,
}

impl Frames {
    /// Appends the stream's next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next datagram, or `None` until it is complete.
    ///
    /// # Errors
    /// [`Malformed`] for an invalid length, and from then on, because the framing is lost.
    pub fn take(&mut self) -> Result<Option<&[u8]>, Malformed> {
        let rest = &self.bytes[self.taken..];
        let Some((header, rest)) = rest.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes(*header));
        if !(1..=DATAGRAM_BYTES_MAX).contains(&length) {
            return Err(Malformed("frame: length"));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let start = self.taken + HEADER_BYTES;
        self.taken = start + length;
        Ok(Some(&self.bytes[start..self.taken]))
    }
}

/// Appends `datagram` to `out`, framed for a stream.
///
/// # Panics
/// If the datagram is empty or longer than 1500 bytes.
pub fn write_frame(datagram: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(datagram.len()).ok();
    let length = length.filter(|length| (1..=DATAGRAM_BYTES_MAX).contains(&usize::from(*length)));
    let length = length.expect("a datagram has 1 to 1500 bytes");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(datagram);
}

const HEADER_BYTES: usize = 2;
const DATAGRAM_BYTES_MAX: usize = 1_500;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(frames: &mut Frames, found: &mut Vec<Vec<u8>>) -> Result<(), Malformed> {
        while let Some(datagram) = frames.take()? {
            found.push(datagram.to_vec());
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn datagrams_come_out_as_they_went_in_however_the_bytes_are_cut(
            datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..1_501), 0..6),
            cuts in prop::collection::vec(1..2_000_usize, 1..8),
        ) {
            let mut bytes = Vec::new();
            datagrams.iter().for_each(|datagram| write_frame(datagram, &mut bytes));
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            let (mut rest, mut cuts) = (bytes.as_slice(), cuts.iter().cycle());
            while !rest.is_empty() {
                let (part, after) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                frames.push(part);
                rest = after;
                all(&mut frames, &mut found).unwrap();
            }
            prop_assert_eq!(found, datagrams);
        }

        #[test]
        fn any_bytes_are_datagrams_or_malformed_and_little_is_kept(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 0..30),
        ) {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for part in parts {
                frames.push(&part);
                if all(&mut frames, &mut found).is_err() {
                    prop_assert!(frames.take().is_err(), "from then on");
                    break;
                }
                prop_assert!(frames.bytes.len() - frames.taken < HEADER_BYTES + DATAGRAM_BYTES_MAX);
            }
            prop_assert!(found.iter().all(|datagram| (1..=1_500).contains(&datagram.len())));
        }
    }

    #[test]
    fn a_length_of_no_datagram_is_malformed_at_once() {
        for length in [0_u16, 1_501, u16::MAX] {
            let mut frames = Frames::default();
            frames.push(&length.to_be_bytes());
            assert!(frames.take().is_err(), "{length}");
        }
    }
}
