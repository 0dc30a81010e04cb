//! Every message there and back, and every way in that is not one.

mod arbitrary;
mod hostile;
mod refusals;
mod round_trip;
