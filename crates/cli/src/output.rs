//! Output of a command on standard output and standard error, whose reader may have gone.
//!
//! Only this module prints: `println!` and similar macros panic if the reader has gone, and clippy
//! reports them.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stderr, stdout};

/// Prints a line of a command's result, and ends the command if it cannot be written; see
/// [`answer`].
macro_rules! answer {
    ($($words:tt)*) => { $crate::output::answer(format_args!($($words)*)) };
}

/// Prints a line about ongoing work on standard output, whether it is read or not.
macro_rules! tell {
    () => { $crate::output::tell(format_args!("")) };
    ($($words:tt)*) => { $crate::output::tell(format_args!($($words)*)) };
}

/// Prints a line for the person on standard error, whether it is read or not.
macro_rules! note {
    ($($words:tt)*) => { $crate::output::note(format_args!($($words)*)) };
}

/// Prints a line on standard output. If the reader has closed the pipe, the process ends
/// successfully; if the system refuses the line for another reason, it ends with an error.
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

/// Prints a line on standard output and ignores errors.
pub(crate) fn tell(words: Arguments<'_>) {
    let _ = writeln!(stdout(), "{words}");
}

/// Prints a line on standard error and ignores errors.
pub(crate) fn note(words: Arguments<'_>) {
    let _ = writeln!(stderr(), "{words}");
}
