use std::io::{self, ErrorKind, Read};

use crate::mcap::{Break, MAGIC, Record, read};

/// Reader of an MCAP file's records one by one, for files larger than memory.
///
/// Memory: one record, of at most 1 MiB.
#[derive(Debug)]
pub struct Stream<R> {
    from: R,
    at: u64,
    record: Vec<u8>,
    is_over: bool,
}

impl<R: Read> Stream<R> {
    /// Returns a reader of the records in `from`; `None` if that does not begin with the MCAP
    /// magic.
    ///
    /// # Errors
    /// When `from` cannot be read.
    pub fn new(mut from: R) -> io::Result<Option<Self>> {
        let mut record = Vec::new();
        let magic = MAGIC.len() as u64;
        from.by_ref().take(magic).read_to_end(&mut record)?;
        Ok((record == MAGIC).then_some(Self { from, at: magic, record, is_over: false }))
    }

    /// Returns the next record and its offset in the file; `None` at the end of the file, and after
    /// the first invalid record.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read_next(&mut self) -> io::Result<Option<(u64, Result<Record<'_>, Break>)>> {
        if self.is_over {
            return Ok(None);
        }
        let at = self.at;
        self.record.clear();
        if self.append(HEAD_BYTES)? == 0 {
            self.is_over = true;
            return Ok(None);
        }
        if let Err(broken) = self.append_content()? {
            self.is_over = true;
            return Ok(Some((at, Err(broken))));
        }
        self.at += self.record.len() as u64;
        let is_footer = matches!(read(&self.record), Ok((Record::Footer, _)));
        let ends = if is_footer { self.append_end()? } else { Ok(()) };
        let record = read(&self.record).and_then(|(record, _)| ends.map(|()| record));
        self.is_over = is_footer || record.is_err();
        Ok(Some((at, record)))
    }

    /// Reads the content of the record whose opcode and length have been read.
    fn append_content(&mut self) -> io::Result<Result<(), Break>> {
        let length = self.record.get(1..HEAD_BYTES).and_then(|it| it.try_into().ok());
        let Some(length) = length.map(u64::from_le_bytes) else { return Ok(Err(Break::Short)) };
        // Checked before the bytes are read, of which a wrong length could claim too many.
        if !is_known(self.record[0]) || length > RECORD_BYTES_MAX {
            return Ok(Err(Break::Foreign));
        }
        let is_whole = self.append(length as usize)? == length as usize;
        Ok(if is_whole { Ok(()) } else { Err(Break::Short) })
    }

    /// Checks the magic behind the footer.
    fn append_end(&mut self) -> io::Result<Result<(), Break>> {
        let begin = self.record.len();
        self.append(MAGIC.len() + 1)?;
        let end = &self.record[begin..];
        let ends = match end == MAGIC {
            true => Ok(()),
            false if MAGIC.starts_with(end) => Err(Break::Short),
            false => Err(Break::Foreign),
        };
        self.record.truncate(begin);
        Ok(ends)
    }

    /// Appends up to `count` bytes; fewer at the end of the file.
    fn append(&mut self, count: usize) -> io::Result<usize> {
        let mut limited = self.from.by_ref().take(count as u64);
        loop {
            match limited.read_to_end(&mut self.record) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

/// Returns whether records begin with this byte.
fn is_known(opcode: u8) -> bool {
    // An unknown one is refused whatever follows; a known one is short without content.
    read(&[opcode]).err() == Some(Break::Short)
}

const HEAD_BYTES: usize = 9;
/// Longest record: a topic's unit has at most 256 KiB, a chunk less than 1 MiB.
const RECORD_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mcap::{
        Channel, Message, Records, write_begin, write_channel, write_end, write_message,
    };

    type Found = Vec<(u64, Result<String, Break>)>;

    fn streamed(bytes: &[u8]) -> Option<Found> {
        let mut stream = Stream::new(bytes).unwrap()?;
        let mut found = Vec::new();
        while let Some((at, record)) = stream.read_next().unwrap() {
            found.push((at, record.map(|record| format!("{record:?}"))));
        }
        Some(found)
    }

    fn whole(bytes: &[u8]) -> Option<Found> {
        let records = Records::new(bytes)?;
        let told = |record: Result<Record<'_>, Break>| record.map(|it| format!("{it:?}"));
        Some(records.map(|(at, record)| (at as u64, told(record))).collect())
    }

    fn file() -> Vec<u8> {
        let mut bytes = Vec::new();
        write_begin("", "a library", &mut bytes);
        let channel = Channel { id: 1, topic: "/a", message_encoding: "json", schema: None };
        write_channel(&channel, &mut bytes);
        for sequence in 0..3 {
            let data = &[b' '; 40][..10 * sequence as usize];
            let message = Message { channel: 1, sequence, at: 9, published_at: 8, data };
            write_message(&message, &mut bytes);
        }
        write_end(&mut bytes);
        bytes
    }

    #[test]
    fn a_stream_ends_where_the_whole_file_is_cut() {
        let bytes = file();
        assert_eq!(whole(&bytes).unwrap().len(), 7);
        for length in 0..=bytes.len() {
            assert_eq!(streamed(&bytes[..length]), whole(&bytes[..length]), "cut at {length}");
        }
        assert_eq!(streamed(&[&bytes[..], b"x"].concat()), whole(&[&bytes[..], b"x"].concat()));
    }

    #[test]
    fn a_record_that_claims_to_be_longer_than_any_is_refused_unread() {
        let mut bytes = file();
        let at = MAGIC.len() + 1;
        bytes[at..at + 8].copy_from_slice(&(RECORD_BYTES_MAX + 1).to_le_bytes());
        assert_eq!(streamed(&bytes).unwrap(), [(8, Err(Break::Foreign))]);
    }

    proptest! {
        #[test]
        fn a_stream_of_changed_bytes_ends_where_the_whole_file_does(at in 8..250_usize, to: u8) {
            let mut bytes = file();
            let at = at % bytes.len();
            bytes[at] = to;
            let kept = |found: Option<Found>| {
                // A record that is too long for a stream seems cut off to the other reader.
                found.map(|it| it.into_iter().take_while(|(_, record)| record.is_ok()).collect::<Vec<_>>())
            };
            prop_assert_eq!(kept(streamed(&bytes)), kept(whole(&bytes)));
        }
    }
}
