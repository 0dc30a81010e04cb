//! Every message there and back, and every way in that is not one.

pub(crate) mod arbitrary;
mod hostile;
mod refusals;
mod round_trip;
