//! Packet-size probe: another size in a running session for a limited time, with measurements.
//!
//! `tautline probe mtu` posts a [`Step`] to [`PATH`] at the console's address. The response is an
//! [`Outcome`] at the end of the step, or one line with the reason for a refusal. The configured
//! sizes are restored before the response, and also if the client disconnects earlier.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::header::ORIGIN;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::{Deserialize, Serialize};
use tautline_message::{LinkState, ProbeQuestion, SessionState, Snapshot};
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_net::driver::Handle;
use tautline_net::stats::Latest;
use tautline_units::ByteCount;

use crate::reception::Shared;
use crate::watch::{DELAY_MAX, Watch};

pub use crate::watch::{Delays, Measured};

/// Path to which steps are posted, as JSON.
pub const PATH: &str = "/probe/packet-size";

/// One step of the packet-size probe: sizes to try, and durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Largest datagram from the vehicle: 150 to 1500 bytes of UDP payload.
    pub up_bytes: u16,
    /// Largest datagram to the vehicle: 150 to 1500 bytes of UDP payload.
    pub down_bytes: u16,
    /// Time for the sizes to take effect and for older packets to drain, at most 10 s.
    pub settle_ms: u64,
    /// Duration of the measurement after `settle_ms`, 500 ms to 60 s.
    pub measure_ms: u64,
}

/// Result of a step of the packet-size probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Measurements of a step that ran to its end.
    Measured(Measured),
    /// Reason for which the step was stopped early, in a few words.
    Stopped(String),
}

/// Access of a probe to the running operator.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// Sequence number of the next question to the vehicle. A step of the packet-size probe holds
    /// the lock while it runs; another one is refused meanwhile.
    turn: Arc<tokio::sync::Mutex<u64>>,
    shared: Arc<Shared>,
    latest: Latest,
    handle: Handle,
    clock: Clock,
    configured: ByteCount,
}

impl Probe {
    pub(crate) fn new(
        shared: Arc<Shared>,
        latest: Latest,
        handle: Handle,
        clock: Clock,
        configured: ByteCount,
    ) -> Self {
        Self { turn: Arc::default(), shared, latest, handle, clock, configured }
    }

    /// Returns the route to which steps are posted.
    pub(crate) fn routes(self) -> Router {
        Router::new().route(
            PATH,
            post(async move |headers: HeaderMap, body: Bytes| self.answer(&headers, &body).await),
        )
    }

    async fn answer(&self, headers: &HeaderMap, body: &[u8]) -> Response {
        if headers.contains_key(ORIGIN) {
            return refuse(StatusCode::FORBIDDEN, "a browser's page may not probe");
        }
        let step = match serde_json::from_slice::<Step>(body) {
            Ok(step) => step,
            Err(error) => {
                return refuse(StatusCode::BAD_REQUEST, &format!("invalid step: {error}"));
            }
        };
        if let Err(why) = step.check() {
            return refuse(StatusCode::BAD_REQUEST, &why);
        }
        let Ok(mut next) = self.turn.try_lock() else {
            return refuse(StatusCode::CONFLICT, "another probe is running");
        };
        if let Err(why) = self.ready() {
            return refuse(StatusCode::CONFLICT, &why);
        }
        let outcome = match self.run(&step, &mut next).await {
            Ok(measured) => Outcome::Measured(measured),
            Err(why) => Outcome::Stopped(why),
        };
        match serde_json::to_vec(&outcome) {
            Ok(json) => json.into_response(),
            Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    /// Runs one step; returns the measurements, or why it was stopped: the session or all links
    /// were lost, the vehicle refused, or a command was refused by the transport. The configured
    /// sizes are restored at the end, and when the future is dropped.
    async fn run(&self, step: &Step, next: &mut u64) -> Result<Measured, String> {
        let refused = || {
            let snapshot = self.latest.snapshot();
            let mut channels = snapshot.channels().iter();
            let command = channels.find(|other| other.channel == channels::COMMAND.get());
            command.map_or(0, |channel| channel.units.refused())
        };
        let refused_before = refused();
        let _restore = Restore(self);
        *self.watch() = Some(Watch::new(*next));
        tracing::info!(up = step.up_bytes, down = step.down_bytes, "packet sizes for a probe");
        let begun = self.clock.now();
        let from = begun + Duration::from_millis(step.settle_ms);
        let to = from + Duration::from_millis(step.measure_ms);
        let mut due = tokio::time::interval(QUESTION_INTERVAL);
        let mut used = Used::default();
        loop {
            due.tick().await;
            let now = self.clock.now();
            if now >= to + DELAY_MAX {
                break;
            }
            self.ready()?;
            if refused() > refused_before {
                return Err("commands were refused by the operator's transport".into());
            }
            self.handle.set_datagram_bytes_max(ByteCount::new(step.down_bytes.into()));
            *next = self.ask(Some(step.up_bytes));
            if now >= from {
                used.note(self);
            }
        }
        let watch = self.watch().take().ok_or("the probe was cancelled")?;
        let mut measured = watch.measured(from, to)?;
        (measured.up_bytes_used, measured.down_bytes_used) = (used.up, used.down);
        Ok(measured)
    }

    /// Checks that a session is established, a link is up, and the vehicle has not refused the
    /// probe.
    fn ready(&self) -> Result<(), String> {
        let standing = self.shared.standing();
        if standing.state != SessionState::Established {
            let reason =
                if standing.reason.is_empty() { "it has not started" } else { &standing.reason };
            return Err(format!("no session with the vehicle: {reason}"));
        }
        if !self.latest.snapshot().links().iter().any(|link| link.state == LinkState::Up) {
            return Err("no link to the vehicle is up".into());
        }
        match self.watch().as_ref().and_then(Watch::refusal) {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        }
    }

    /// Sends a question to the vehicle, which answers it and limits its datagrams to `up_bytes`, or
    /// to the configured size for `None`. Returns the next sequence number.
    fn ask(&self, up_bytes: Option<u16>) -> u64 {
        let now = self.clock.now();
        let sequence = self.watch().as_mut().map_or(0, |watch| watch.ask(now));
        let datagram_bytes = up_bytes.map(|bytes| ByteCount::new(bytes.into()));
        let unit = ProbeQuestion { sequence, datagram_bytes, hold: HOLD }.encode();
        self.shared.note_sent(ByteCount::of(&unit));
        self.handle.send(channels::PROBE_QUESTION, unit, DELAY_MAX);
        sequence + 1
    }

    fn watch(&self) -> MutexGuard<'_, Option<Watch>> {
        lock(self.shared.watch())
    }
}

impl Step {
    fn check(&self) -> Result<(), String> {
        for (name, bytes) in [("up_bytes", self.up_bytes), ("down_bytes", self.down_bytes)] {
            if !(150..=1_500).contains(&bytes) {
                return Err(format!("{name} is {bytes}, not within 150 to 1500"));
            }
        }
        if self.settle_ms > 10_000 {
            return Err(format!("settle_ms is {}, over 10000", self.settle_ms));
        }
        if !(500..=60_000).contains(&self.measure_ms) {
            return Err(format!("measure_ms is {}, not within 500 to 60000", self.measure_ms));
        }
        Ok(())
    }
}

/// Value that ends the probe when dropped: it restores the configured datagram sizes of both ends.
struct Restore<'a>(&'a Probe);

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        let probe = self.0;
        *probe.watch() = None;
        probe.handle.set_datagram_bytes_max(probe.configured);
        // If this question is lost, the vehicle restores its size when the last question's hold
        // time ends.
        probe.ask(None);
        tracing::info!("configured packet sizes again");
    }
}

/// Size of the largest datagrams in use, in bytes, from the vehicle (`up`) and to it (`down`): the
/// smallest over the links that are up, by the latest snapshots; 0 before one shows such a link.
#[derive(Default)]
struct Used {
    up: u64,
    down: u64,
}

impl Used {
    fn note(&mut self, probe: &Probe) {
        let smallest = |snapshot: &Snapshot| {
            let up = snapshot.links().iter().filter(|link| link.state == LinkState::Up);
            up.map(|link| link.datagram_bytes.get()).min()
        };
        self.down = smallest(&probe.latest.snapshot()).unwrap_or(self.down);
        self.up = smallest(&probe.shared.vehicle()).unwrap_or(self.up);
    }
}

fn refuse(status: StatusCode, why: &str) -> Response {
    (status, format!("{why}\n")).into_response()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Interval of questions, which is that of an operator's commands in the lab too.
const QUESTION_INTERVAL: Duration = Duration::from_millis(50);
/// Time for which the vehicle keeps a size without a question: 20 questions in a row would have to
/// be lost.
const HOLD: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_out_of_bounds_is_refused_by_name() {
        let step = Step { up_bytes: 150, down_bytes: 1_500, settle_ms: 0, measure_ms: 500 };
        assert_eq!(step.check(), Ok(()));
        let wrong = |step: Step| step.check().unwrap_err();
        assert!(wrong(Step { up_bytes: 149, ..step }).contains("up_bytes is 149"));
        assert!(wrong(Step { down_bytes: 1_501, ..step }).contains("down_bytes is 1501"));
        assert!(wrong(Step { settle_ms: 10_001, ..step }).contains("settle_ms"));
        assert!(wrong(Step { measure_ms: 499, ..step }).contains("measure_ms"));
        assert!(serde_json::from_str::<Step>("{\"up_bytes\":70000}").is_err());
    }
}
