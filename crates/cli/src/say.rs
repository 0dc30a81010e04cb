//! The words of a command on standard output and standard error, whose reader may have gone.
//!
//! Nothing else here prints: `println!` and its like panic where nobody reads, as clippy reports.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stderr, stdout};

/// Prints a line that is what the command was run for; see [`answer`].
macro_rules! answer {
    ($($words:tt)*) => { $crate::say::answer(format_args!($($words)*)) };
}

/// Prints a line beside the work that goes on whether somebody reads it or not.
macro_rules! tell {
    () => { $crate::say::tell(format_args!("")) };
    ($($words:tt)*) => { $crate::say::tell(format_args!($($words)*)) };
}

/// Prints a line for the person on standard error, whether somebody reads it or not.
macro_rules! note {
    ($($words:tt)*) => { $crate::say::note(format_args!($($words)*)) };
}

/// Prints a line on standard output. Who closed the pipe has read enough: the command ends. It fails where the system
/// refuses the line for another reason.
pub(crate) fn answer(words: Arguments<'_>) {
    let written = writeln!(stdout(), "{words}").and_then(|()| stdout().flush());
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            note(format_args!("tautline: the answer cannot be written: {error}"));
            std::process::exit(1);
        }
    }
}

/// Prints a line on standard output, whatever becomes of it.
pub(crate) fn tell(words: Arguments<'_>) {
    let _ = writeln!(stdout(), "{words}");
}

/// Prints a line on standard error, whatever becomes of it.
pub(crate) fn note(words: Arguments<'_>) {
    let _ = writeln!(stderr(), "{words}");
}
