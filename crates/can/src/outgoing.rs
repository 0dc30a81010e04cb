use std::time::Duration;

use tautline_units::Instant;

use crate::control::{Commanded, Control, Term};
use crate::frame::{Frame, Id, Kind};
use crate::limits::Limits;
use crate::seal::Seal;
use crate::signal::Signal;

/// A message of the DBC that the map sends, and the state of its sending.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) name: String,
    pub(crate) id: Id,
    pub(crate) kind: Kind,
    /// Data of a frame in which all constant signals have their values.
    pub(crate) constant: Vec<u8>,
    pub(crate) bound: Vec<Bound>,
    /// Constants that replace the others during a stop, with their values.
    pub(crate) at_stop: Vec<(Signal, f64)>,
    /// Constants of the last frame at the end of the process; `None` if none is sent.
    pub(crate) at_end: Option<Vec<(Signal, f64)>>,
    pub(crate) seal: Seal,
    pub(crate) schedule: Schedule,
    pub(crate) due: Option<Instant>,
    pub(crate) sent_at: Option<Instant>,
}

/// Times at which a message is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Schedule {
    /// From the first controls on, one frame in each period of this length.
    Always(Duration),
    /// During a stop: a first frame immediately, more with this period.
    Stop(Duration),
    /// Once, at the end of the process.
    End,
}

/// A signal of a sent message whose value follows the controls.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) signal: Signal,
    pub(crate) terms: Vec<Term>,
    pub(crate) limits: Limits,
    /// Value of the signal in the newest frame, 0 before the first.
    pub(crate) last: f64,
}

impl Outgoing {
    /// Returns the time between two frames; `None` if only one is sent, at the end.
    pub(crate) fn period(&self) -> Option<Duration> {
        match self.schedule {
            Schedule::Always(period) | Schedule::Stop(period) => Some(period),
            Schedule::End => None,
        }
    }

    /// Returns the instant from which the next frame may be sent: a little before it is due, so
    /// that a turn that comes early does not leave it to the next turn. `None` if no frame is due
    /// now: outside a stop, or only at the end.
    pub(crate) fn due(&self, is_stopping: bool) -> Option<Instant> {
        let early = early(self.period()?);
        let due = self.due.map_or(Instant::ZERO, |due| due - early);
        match self.schedule {
            Schedule::Always(_) => Some(due),
            Schedule::Stop(_) => is_stopping.then_some(due),
            Schedule::End => None,
        }
    }

    /// Returns the frame that is due at `now`, the one after `count` others of its message, and
    /// makes the next one due a period later.
    pub(crate) fn frame(
        &mut self,
        commanded: &Commanded,
        is_stopping: bool,
        count: u64,
        now: Instant,
    ) -> Option<Frame> {
        if let Some(period) = self.period() {
            // Frames that were due during a pause are not sent later.
            let next = self.due.map(|due| due + period);
            let next = next.filter(|next| *next > now + early(period));
            self.due = Some(next.unwrap_or(now + period));
        }
        let elapsed = self.sent_at.map_or(self.period().unwrap_or_default(), |at| now.since(at));
        // A pause does not add to the way that a value may go at once.
        let elapsed = elapsed.min(2 * self.period().unwrap_or_default());
        self.sent_at = Some(now);
        let mut data = self.constant.clone();
        for bound in &mut self.bound {
            let target: f64 = bound.terms.iter().map(|term| term.value(commanded)).sum();
            bound.last = match target.is_nan() {
                // An axis without a set point leaves its signal as the DBC starts it.
                true => bound.signal.physical(bound.signal.bits.get(&data)),
                false => bound.limits.next(target, bound.last, elapsed),
            };
        }
        if is_stopping {
            for (signal, value) in &self.at_stop {
                signal.bits.set(&mut data, signal.raw(*value));
                let bound = self.bound.iter_mut().find(|bound| bound.signal.name == signal.name);
                if let Some(bound) = bound {
                    bound.last = *value;
                }
            }
        }
        for Bound { signal, last, .. } in &self.bound {
            signal.bits.set(&mut data, signal.raw(*last));
        }
        self.sealed(data, count)
    }

    /// Returns the last frame, if the map has one: its own constants over those of the message,
    /// and the newest values of all else.
    pub(crate) fn last_frame(&self, count: u64) -> Option<Frame> {
        let at_end = self.at_end.as_ref()?;
        let mut data = self.constant.clone();
        for Bound { signal, last, .. } in &self.bound {
            signal.bits.set(&mut data, signal.raw(*last));
        }
        for (signal, value) in at_end {
            signal.bits.set(&mut data, signal.raw(*value));
        }
        self.sealed(data, count)
    }

    /// Returns whether a signal of the message follows this control.
    pub(crate) fn follows(&self, control: Control) -> bool {
        let mut terms = self.bound.iter().flat_map(|bound| &bound.terms);
        terms.any(|term| term.control == control)
    }

    /// Returns whether a signal of the message follows the indicators, and this action with them.
    pub(crate) fn indicates(&self, action: u8) -> bool {
        let mut terms = self.bound.iter().flat_map(|bound| &bound.terms);
        terms.any(|term| match term.control {
            Control::Indicators { left, right, hazard } => [left, right, hazard].contains(&action),
            _ => false,
        })
    }

    /// Resets the schedule of a message that is sent during stops, so that the next stop begins
    /// with a frame at once; does nothing for other schedules.
    pub(crate) fn rest(&mut self) {
        if matches!(self.schedule, Schedule::Stop(_)) {
            self.due = None;
        }
    }

    fn sealed(&self, mut data: Vec<u8>, count: u64) -> Option<Frame> {
        self.seal.write(self.id, &mut data, count);
        Frame::new(self.id, self.kind, &data)
    }
}

/// Returns how long before it is due a frame of this period may be sent.
fn early(period: Duration) -> Duration {
    (period / 4).min(EARLY_MAX)
}

/// Maximum time before a frame is due at which it may be sent: a quarter of the guard's period,
/// since calls come no earlier than that.
const EARLY_MAX: Duration = Duration::from_micros(2_500);
