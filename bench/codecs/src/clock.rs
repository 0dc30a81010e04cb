//! The only place of this program that reads a clock.

use std::time::Instant;

/// Returns the present instant.
#[expect(clippy::disallowed_methods, reason = "times are what this program measures")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
