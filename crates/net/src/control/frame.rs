use super::Error;

/// Maximum body of a frame in bytes: room for a list of some hundred vehicles, and small enough to
/// bound the memory that a peer can occupy.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// An assembler of frames from received bytes: holds at most one frame and one further read.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    bytes: Vec<u8>,
}

impl Assembler {
    /// Returns the buffer for the next bytes: append only.
    pub(super) fn space(&mut self) -> &mut Vec<u8> {
        self.bytes.reserve(READ_BYTES);
        &mut self.bytes
    }

    /// Returns whether the bytes end in the middle of a frame, after [`next`](Self::next) has
    /// returned `None`.
    pub(super) fn is_within_frame(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Removes and returns the body of the next complete frame, if there is one.
    ///
    /// # Errors
    /// [`Error::FrameTooLong`], also in all later calls: the bytes can no longer be delimited.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let Some((header, rest)) = self.bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*header);
        let body_bytes = length as usize;
        if body_bytes > BODY_BYTES_MAX {
            return Err(too_long(u64::from(length)));
        }
        let Some(body) = rest.get(..body_bytes) else { return Ok(None) };
        let body = body.to_vec();
        self.bytes.drain(..HEADER_BYTES + body_bytes);
        Ok(Some(body))
    }
}

/// Returns `body` with its header.
///
/// # Errors
/// [`Error::FrameTooLong`] over [`BODY_BYTES_MAX`].
pub(super) fn frame(body: &[u8]) -> Result<Vec<u8>, Error> {
    let length = match u32::try_from(body.len()) {
        Ok(length) if body.len() <= BODY_BYTES_MAX => length,
        Ok(_) | Err(_) => return Err(too_long(body.len() as u64)),
    };
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(body);
    Ok(bytes)
}

fn too_long(bytes: u64) -> Error {
    Error::FrameTooLong { bytes, bytes_max: BODY_BYTES_MAX as u64 }
}

const HEADER_BYTES: usize = 4;
/// Buffer space per read: most frames are far smaller, and the longest needs few reads.
const READ_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_however_the_bytes_are_cut() {
        let bodies = [vec![], vec![1], vec![2; 300], vec![3; BODY_BYTES_MAX]];
        let bytes: Vec<u8> = bodies.iter().flat_map(|body| frame(body).unwrap()).collect();
        for cut in [1, 3, 4, 5, 1000, bytes.len()] {
            let mut assembler = Assembler::default();
            let mut found = Vec::new();
            for part in bytes.chunks(cut) {
                assembler.space().extend_from_slice(part);
                while let Some(body) = assembler.next().unwrap() {
                    found.push(body);
                }
            }
            assert_eq!(found, bodies, "cut every {cut} bytes");
            assert!(!assembler.is_within_frame());
        }
    }

    #[test]
    fn a_frame_over_the_limit_is_refused_from_its_header_on() {
        let mut assembler = Assembler::default();
        assembler.space().extend_from_slice(&(BODY_BYTES_MAX as u32 + 1).to_be_bytes());
        for _ in 0..2 {
            assert!(matches!(assembler.next(), Err(Error::FrameTooLong { bytes: 65_537, .. })));
        }
        assert!(frame(&vec![0; BODY_BYTES_MAX + 1]).is_err());
    }

    proptest! {
        #[test]
        fn any_frame_length_is_awaited_or_refused_in_bounded_memory(
            length: u32,
            rest in prop::collection::vec(any::<u8>(), 0..99),
        ) {
            for length in [length, length % 120] {
                let mut assembler = Assembler::default();
                assembler.space().extend(length.to_be_bytes().iter().chain(&rest));
                let (bytes, whole) = (rest.len() + HEADER_BYTES, length as usize);
                match assembler.next() {
                    Ok(Some(body)) => prop_assert_eq!(&body[..], &rest[..whole]),
                    Ok(None) => prop_assert!(rest.len() < whole && whole <= BODY_BYTES_MAX),
                    Err(_) => prop_assert!(whole > BODY_BYTES_MAX),
                }
                prop_assert!(assembler.bytes.len() <= bytes);
                prop_assert!(assembler.bytes.capacity() <= 4 * READ_BYTES);
            }
        }
    }
}
