use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// File behind an [`Output`]: on a disk, or a test's substitute.
pub(super) trait Sheet: Write + Send {
    /// Truncates the file to `length` bytes, where writing continues.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Sheet for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        if self.metadata()?.len() > length {
            self.set_len(length)?;
        }
        self.seek(SeekFrom::Start(length)).map(drop)
    }
}

/// File that contains complete entries only: a partly written entry is written again when the disk
/// accepts more.
pub(super) struct Output {
    sheet: Box<dyn Sheet>,
    /// Buffered entries that are not in the file yet.
    waiting: Vec<u8>,
    /// Bytes of the complete entries in the file.
    length: u64,
    /// True from the start of a write until it succeeds: a failed one may have left a partial
    /// entry.
    is_torn: bool,
}

impl Output {
    pub(super) fn new(sheet: impl Sheet + 'static) -> Self {
        Self { sheet: Box::new(sheet), waiting: Vec::new(), length: 0, is_torn: false }
    }

    /// Buffers an entry, and writes all buffered ones once there are 64 KiB. Entries stay buffered
    /// after an error.
    pub(super) fn append(&mut self, entry: &[u8]) -> io::Result<()> {
        self.waiting.extend(entry);
        if self.waiting.len() < WAITING_BYTES { Ok(()) } else { self.flush() }
    }

    /// Writes the buffered entries to the system, after cutting off a partial entry of an earlier
    /// failure.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.sheet.cut(self.length)?;
        }
        self.is_torn = true;
        self.sheet.write_all(&self.waiting)?;
        self.is_torn = false;
        self.length += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
}

/// Number of buffered bytes from which on they are written to the file.
const WAITING_BYTES: usize = 64 << 10;
