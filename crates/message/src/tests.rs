//! Round trips of every message, and refusal of every kind of invalid bytes.

pub(crate) mod arbitrary;
mod hostile;
mod refusals;
mod round_trip;
