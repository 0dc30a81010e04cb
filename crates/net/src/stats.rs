//! Stats of one end, as a [`Snapshot`] taken from its session, with three renderings: a [`Table`]
//! for people, [metrics](add_to) for Prometheus, and the message that both ends exchange
//! ([`Snapshot::encode`]).

mod cause;
mod history;
mod prometheus;
mod session;
mod table;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tautline_message::Snapshot;
use tautline_message::snapshot::{End, ProcessStats};
use tautline_transport::Session;
use tautline_transport::link::View;
use tautline_transport::relay::LegView;
use tautline_units::Instant;

pub use history::History;
pub use prometheus::add_to;
pub use table::Table;

use crate::drops::Drops;
use session::Totals;

/// Newest snapshot of one end; clones share it.
#[derive(Clone, Debug)]
pub struct Latest {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    snapshot: Snapshot,
    totals: History<Totals>,
}

impl Latest {
    /// Creates an empty snapshot of `end`.
    pub fn of(end: End) -> Self {
        let shared = Shared { snapshot: Snapshot::empty(end), totals: History::default() };
        Self { shared: Arc::new(Mutex::new(shared)) }
    }

    /// Replaces the session's part of the snapshot by the stats of `session`, whose links are named
    /// by `name`, of the `legs` through relays, and of the event loop's `drops`.
    pub fn take(
        &self,
        session: &Session,
        legs: &[LegView],
        drops: &Drops,
        name: impl Fn(&View) -> String,
        now: Instant,
    ) {
        let mut shared = self.shared();
        let shared = &mut *shared;
        let totals = Totals::of(session);
        let stats = session::stats(session, legs, drops, name, &shared.totals, &totals, now);
        shared.totals.push(totals, now);
        shared.snapshot.session = Some(stats);
        shared.snapshot.taken_at = now;
    }

    /// Replaces the process's own part of the snapshot.
    pub fn set_process(&self, process: ProcessStats, now: Instant) {
        let mut shared = self.shared();
        shared.snapshot.process = Some(process);
        shared.snapshot.taken_at = now;
    }

    /// Returns a copy of the newest snapshot, which is empty before the first stats.
    pub fn snapshot(&self) -> Snapshot {
        self.shared().snapshot.clone()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Latest {
    /// Formats the newest snapshot as a table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Table(&self.snapshot()).fmt(f)
    }
}
