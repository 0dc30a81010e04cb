//! Rate control, scheduler and code together, on recorded and modelled links: `tautline lab links`.
//!
//! Two real sessions of the transport run in virtual time. A vehicle's source always fills its
//! budget with media units; an operator receives them and sends 50 commands per second. The result
//! is the application's goodput: the payload of the units that arrived complete within their
//! deadline.

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
