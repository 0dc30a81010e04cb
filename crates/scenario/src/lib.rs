//! Simulated endpoints in virtual time: the basis of every test, bench and measurement of the
//! transport.
//!
//! - [`endpoint`]: a session and its application as one node of a
//!   [`World`](tautline_sim::world::World).
//! - [`traffic`]: a configurable application: media units at even intervals, commands.
//! - [`faults`]: faults injected into datagrams before a session receives them.
//! - [`script`]: timed events on links, clocks and endpoints.
//! - [`run`]: a vehicle and an operator joined by links.
//! - [`direct`]: two sessions over a wire without delay or loss.
//! - [`cuts`]: a moving car, some of whose links are cut repeatedly.
//! - [`measure`]: on-time shares, delays, gaps, goodput.
//! - [`policies`]: rate controllers and planners that the transport's own are compared with.
//!
//! Everything derives from a seed: equal seeds produce equal runs, byte for byte.
//!
//! ```
//! use tautline_scenario::run::Setup;
//! use tautline_scenario::script::{Script, Step};
//! use tautline_scenario::traffic::{Commands, Media, Traffic};
//! use tautline_sim::link::{Config, Pair};
//! use tautline_units::{Bitrate, Duration, Instant};
//!
//! let link = Config::of_rate(Bitrate::from_mbps(8)).with_delay(Duration::from_millis(20));
//! let setup = Setup::new(7, vec![Pair::symmetric(link); 2]);
//! let vehicle = Traffic::default().with_media(Media::slices(360, Bitrate::from_mbps(2)));
//! let operator = Traffic::default().with_commands(Commands::default());
//! let mut run = setup.start(vehicle, operator)?;
//! let script = Script::from([(Instant::from_millis(1_000), Step::Cut(1))]);
//! run.play(&script, Instant::from_millis(2_000));
//! let media = run.media();
//! assert!(media.iter().filter(|unit| unit.delay().is_some()).count() > 500);
//! # Ok::<(), tautline_scenario::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod cuts;
pub mod direct;
pub mod endpoint;
mod error;
pub mod faults;
pub mod measure;
pub mod policies;
pub mod run;
pub mod script;
pub mod traffic;

pub use error::Error;
