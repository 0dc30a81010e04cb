use super::{Break, CHUNK, take, take_text, write, write_text};

/// Messages that are compressed together.
///
/// ```text
/// 0   begin        u64  time of the first message
/// 8   end          u64  time of the last
/// 16  length       u64  of the messages
/// 24  checksum     u32  0: none
/// 28  compression  text "lz4"
/// 35  length       u64
/// 43  a frame of LZ4 with one block
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk<'a> {
    /// Time of the first message, in nanoseconds of Unix time.
    pub begins_at: u64,
    /// Time of the last message, in nanoseconds of Unix time.
    pub ends_at: u64,
    /// Uncompressed length of the messages in bytes.
    length: usize,
    block: &'a [u8],
}

impl Chunk<'_> {
    /// Returns the decompressed message records, at most [`MESSAGES_BYTES_MAX`].
    ///
    /// # Errors
    /// [`Break::Foreign`] if their length differs from the chunk's, or if they were not compressed
    /// by this crate's method.
    pub fn messages(&self) -> Result<Vec<u8>, Break> {
        let messages = lz4_flex::block::decompress(self.block, self.length);
        messages.ok().filter(|bytes| bytes.len() == self.length).ok_or(Break::Foreign)
    }
}

/// Appends a chunk of consecutive message records.
///
/// # Panics
/// If they are longer than [`MESSAGES_BYTES_MAX`].
pub fn write_chunk(messages: &[u8], begins_at: u64, ends_at: u64, to: &mut Vec<u8>) {
    assert!(messages.len() <= MESSAGES_BYTES_MAX, "a chunk of {} bytes", messages.len());
    let block = lz4_flex::block::compress(messages);
    write(CHUNK, to, |to| {
        to.extend(begins_at.to_le_bytes());
        to.extend(ends_at.to_le_bytes());
        to.extend((messages.len() as u64).to_le_bytes());
        to.extend(0u32.to_le_bytes());
        write_text(COMPRESSION, to);
        let length = FRAME_BEGIN.len() + 4 + block.len() + FRAME_END.len();
        to.extend((length as u64).to_le_bytes());
        to.extend(FRAME_BEGIN);
        to.extend((block.len() as u32).to_le_bytes());
        to.extend(block);
        to.extend(FRAME_END);
    });
}

/// Reads the content of a chunk, with its records still compressed; refuses a chunk that this crate
/// would not write.
pub(crate) fn read<'a>(content: &mut &'a [u8]) -> Result<Chunk<'a>, Break> {
    let begins_at = u64::from_le_bytes(take(content)?);
    let ends_at = u64::from_le_bytes(take(content)?);
    let length = u64::from_le_bytes(take(content)?);
    let checksum: [u8; 4] = take(content)?;
    let compression = take_text(content)?;
    let frame_length = u64::from_le_bytes(take(content)?);
    let length = usize::try_from(length).ok().filter(|length| *length <= MESSAGES_BYTES_MAX);
    let is_ours =
        checksum == [0; 4] && compression == COMPRESSION && frame_length == content.len() as u64;
    let block = content.strip_prefix(&FRAME_BEGIN).and_then(|rest| rest.strip_suffix(&FRAME_END));
    let (Some(length), true, Some(mut block)) = (length, is_ours, block) else {
        return Err(Break::Foreign);
    };
    let block_length = u32::from_le_bytes(take(&mut block)?);
    match block_length as usize == block.len() {
        true => Ok(Chunk { begins_at, ends_at, length, block }),
        false => Err(Break::Foreign),
    }
}

/// Maximum uncompressed size of a chunk's messages: bounds the reader's memory. Four times the size
/// of written chunks, which end with the first message beyond 128 KiB.
pub const MESSAGES_BYTES_MAX: usize = 512 << 10;
/// MCAP's name for LZ4 frames.
const COMPRESSION: &str = "lz4";
/// LZ4 frame header: magic, version 1 with independent blocks and no checksums, blocks of up to 4
/// MiB, header checksum.
const FRAME_BEGIN: [u8; 7] = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73];
/// LZ4 end mark: an empty block.
const FRAME_END: [u8; 4] = [0; 4];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mcap::{MAGIC, Record, Records};

    fn chunk(messages: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        write_chunk(messages, 3, 4, &mut bytes);
        bytes
    }

    /// The reader of mcap.dev accepts these bytes.
    #[test]
    fn a_chunk_is_a_frame_of_lz4_with_one_block() {
        let bytes = chunk(b"abcdabcdabcdabcdabcdabcd");
        assert_eq!(bytes[8..9], [CHUNK]);
        assert_eq!(bytes[9 + 8 + 28..][..7], *b"\x03\0\0\0lz4");
        assert_eq!(bytes[9 + 8 + 43..][..7], FRAME_BEGIN);
        assert!(bytes.len() < 9 + 8 + 43 + 7 + 4 + 24 + 4, "it is shorter than its messages");
    }

    #[test]
    fn a_length_beyond_the_bound_is_refused_before_unpacking() {
        let mut bytes = chunk(&[7; 1_000]);
        let length_at = 8 + 9 + 16;
        for length in [MESSAGES_BYTES_MAX as u64 + 1, u64::MAX] {
            bytes[length_at..length_at + 8].copy_from_slice(&length.to_le_bytes());
            let found = Records::new(&bytes).unwrap().next();
            assert_eq!(found, Some((8, Err(Break::Foreign))), "{length}");
        }
    }

    proptest! {
        #[test]
        fn messages_survive_their_chunk(messages: Vec<u8>) {
            let bytes = chunk(&messages);
            let found = Records::new(&bytes).unwrap().next();
            let Some((8, Ok(Record::Chunk(chunk)))) = found else { panic!("{found:?}") };
            prop_assert_eq!((chunk.begins_at, chunk.ends_at), (3, 4));
            prop_assert_eq!(chunk.messages(), Ok(messages));
        }

        #[test]
        fn any_length_and_any_block_are_unpacked_or_refused(block: Vec<u8>, length: u64) {
            let mut bytes = chunk(&block);
            bytes[8 + 9 + 16..8 + 9 + 24].copy_from_slice(&length.to_le_bytes());
            for (_, record) in Records::new(&bytes).unwrap() {
                if let Ok(Record::Chunk(chunk)) = record {
                    let messages = chunk.messages();
                    prop_assert!(messages.is_err() || length as usize == block.len());
                }
            }
            let length = (length as usize) % (2 * MESSAGES_BYTES_MAX);
            let _ = Chunk { begins_at: 0, ends_at: 0, length, block: &block }.messages();
        }
    }
}
