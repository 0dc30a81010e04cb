use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// File of an output: on a disk, or a test's substitute.
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
    /// Entries not yet on the disk.
    waiting: Vec<u8>,
    /// Bytes of complete entries on the disk.
    length: u64,
    /// True if the latest write failed and may have left a partial entry.
    is_torn: bool,
}

impl Output {
    pub(super) fn new(sheet: impl Sheet + 'static) -> Self {
        Self { sheet: Box::new(sheet), waiting: Vec::new(), length: 0, is_torn: false }
    }

    /// Appends an entry, which is buffered until the disk accepts it.
    pub(super) fn append(&mut self, entry: &[u8]) -> io::Result<()> {
        self.waiting.extend(entry);
        if self.waiting.len() < WAITING_BYTES { Ok(()) } else { self.flush() }
    }

    /// Writes the buffered entries to the system.
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

/// Bytes buffered before a write.
const WAITING_BYTES: usize = 64 << 10;
