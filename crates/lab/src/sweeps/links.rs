//! Rate control, scheduler and code together, on real and modelled links: `tautline lab links`.
//!
//! Two sessions of the transport itself, in virtual time: a vehicle whose source always fills its
//! budget with media units, an operator who receives them and sends 50 commands a second. What is
//! counted is what the application has of it: the payload of the units that were whole at the
//! other end within their deadline.

pub mod case;
pub mod combo;
pub(super) mod departure;
pub mod drive;
pub(super) mod followed;
pub mod measure;
pub mod scenario;
pub mod scenarios;
pub mod set;
pub mod summary;
pub mod sweep;
pub mod trail;
