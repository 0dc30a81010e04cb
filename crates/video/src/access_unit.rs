use std::fmt;
use std::ops::Deref;

use crate::Error;

/// An access unit in Annex B form, in a buffer with room for a header before it.
///
/// The header of a slice's unit and the header of the console's message are both written into that
/// room, so neither copies the access unit.
#[derive(Clone)]
pub struct AccessUnit {
    /// [`AccessUnit::ROOM`] bytes, then the access unit.
    buffer: Vec<u8>,
}

impl AccessUnit {
    /// Number of bytes reserved before the access unit.
    pub const ROOM: usize = 32;

    /// Wraps the access unit that begins after the first [`ROOM`](Self::ROOM) bytes of `buffer`;
    /// `None` if `buffer` is shorter than that.
    pub fn in_buffer(buffer: Vec<u8>) -> Option<Self> {
        (buffer.len() >= Self::ROOM).then_some(Self { buffer })
    }

    /// Builds an access unit from the bytes that `write` appends behind the room; memory for
    /// `capacity` of them is reserved.
    ///
    /// # Errors
    /// Returns the error of `write`.
    pub(crate) fn write(
        capacity: usize,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut buffer = Vec::with_capacity(Self::ROOM + capacity);
        buffer.resize(Self::ROOM, 0);
        write(&mut buffer)?;
        Ok(Self { buffer })
    }

    /// Returns the buffer with `head` directly before the access unit.
    pub fn behind(mut self, head: [u8; Self::ROOM]) -> Vec<u8> {
        self.buffer[..Self::ROOM].copy_from_slice(&head);
        self.buffer
    }
}

/// Copies the bytes into a buffer with room before them.
impl From<&[u8]> for AccessUnit {
    fn from(bytes: &[u8]) -> Self {
        let mut buffer = Vec::with_capacity(Self::ROOM + bytes.len());
        buffer.resize(Self::ROOM, 0);
        buffer.extend_from_slice(bytes);
        Self { buffer }
    }
}

/// Dereferences to the access unit's bytes, without the room.
impl Deref for AccessUnit {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[Self::ROOM..]
    }
}

/// Compares the bytes and ignores the room.
impl PartialEq for AccessUnit {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for AccessUnit {}

impl fmt::Debug for AccessUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AccessUnit").field(&&**self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_written_before_the_bytes_without_moving_them() {
        let unit = AccessUnit::from(&[7, 8, 9][..]);
        let place = unit.as_ptr();
        let message = unit.behind([1; AccessUnit::ROOM]);
        assert_eq!(message[AccessUnit::ROOM..].as_ptr(), place);
        assert_eq!(message, [&[1; AccessUnit::ROOM][..], &[7, 8, 9]].concat());
        let again = AccessUnit::in_buffer(message).unwrap();
        assert_eq!(again, AccessUnit::from(&[7, 8, 9][..]));
        assert_eq!(again.as_ptr(), place);
    }

    #[test]
    fn a_buffer_without_room_holds_none() {
        assert!(AccessUnit::in_buffer(vec![0; AccessUnit::ROOM - 1]).is_none());
        assert!(AccessUnit::in_buffer(vec![0; AccessUnit::ROOM]).unwrap().is_empty());
    }
}
