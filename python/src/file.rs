//! File descriptors that Python hands over as numbers.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// Returns a duplicate of the open file with this number.
///
/// # Errors
/// When there is none.
#[expect(unsafe_code, reason = "Python knows open files by their numbers only")]
pub(crate) fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the number is borrowed for this call alone, in which Python's lock is held; the
    // system refuses one that is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    borrowed.try_clone_to_owned()
}
