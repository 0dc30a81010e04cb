use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// The file of an output: on a disk, or a test's idea of one.
pub(super) trait Sheet: Write + Send {
    /// Leaves only the first `length` bytes, behind which writing goes on.
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

/// A file that holds whole entries only: what the disk took in part is written again once it takes more.
pub(super) struct Output {
    sheet: Box<dyn Sheet>,
    /// Entries that the disk does not have yet.
    waiting: Vec<u8>,
    /// Bytes of whole entries on the disk.
    length: u64,
    /// The newest write failed, and may have left a part.
    is_torn: bool,
}

impl Output {
    pub(super) fn new(sheet: impl Sheet + 'static) -> Self {
        Self { sheet: Box::new(sheet), waiting: Vec::new(), length: 0, is_torn: false }
    }

    /// Appends a whole entry; it waits where the disk does not take it.
    pub(super) fn append(&mut self, entry: &[u8]) -> io::Result<()> {
        self.waiting.extend(entry);
        if self.waiting.len() < WAITING_BYTES { Ok(()) } else { self.flush() }
    }

    /// Hands what waits to the system.
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

/// What is collected before the system is asked.
const WAITING_BYTES: usize = 64 << 10;
