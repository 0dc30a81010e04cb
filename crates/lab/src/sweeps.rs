//! Comparisons beyond a paper's table: many settings, each with the same trials.

pub mod budgets;
pub mod encoders;
pub mod fairness;
#[cfg(feature = "gcc")]
pub mod gcc;
pub mod links;
pub mod loss;
pub mod own_rate;
pub mod packet_size;
