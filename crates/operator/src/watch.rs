use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_message::ProbeAnswer;
use tautline_transport::{ClockEstimate, Session, UnitNumber};
use tautline_units::{ByteCount, Instant};

/// Measurements of one step of a packet-size probe. Delays are in milliseconds, in no particular
/// order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Delays of media units from the vehicle: from hand-over there to delivery here.
    pub vehicle: Delays,
    /// Delays of the questions to the vehicle, 20 per second: from hand-over here to delivery
    /// there.
    pub operator: Delays,
    /// Time from the hand-over of a question until a slice arrives here whose capture began after
    /// the question reached the vehicle.
    pub end_to_end: Delays,
    /// Bytes that this end sent and received, with 28 bytes of IP and UDP headers per datagram.
    pub wire_bytes: u64,
    /// Bytes of the units that this end sent and received, without the headers of transport.
    pub payload_bytes: u64,
    /// Error bound of the clock comparison, in either direction.
    pub clock_error_ms: f64,
    /// Largest datagram in use from the vehicle, in bytes, on the link that is up and has the
    /// smallest: less than requested if a path carries less. 0 before the vehicle's first report.
    pub up_bytes_used: u64,
    /// Largest datagram in use to the vehicle, in bytes, on the link that is up and has the
    /// smallest; 0 before it is known.
    pub down_bytes_used: u64,
}

/// Delays and losses of the messages of one kind during a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// Delays of the delivered messages in milliseconds.
    pub delays_ms: Vec<f64>,
    /// Number of messages that never arrived, or only after more than 1 s.
    pub lost: u64,
}

/// Observations during a step of a probe; bounded by [`NOTES_MAX`] of each kind.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Sequence number of the first question; earlier ones belong to earlier steps.
    first: u64,
    /// Send time of each question, in the order of sequence numbers from `first` on.
    asked: Vec<Instant>,
    /// Arrival time of each question at the vehicle, by its sequence number and the vehicle's
    /// clock.
    came: BTreeMap<u64, Instant>,
    units: Vec<Unit>,
    lost: Vec<u64>,
    /// Totals of both directions over time: instant, bytes on the wire, and bytes of units.
    totals: Vec<(Instant, u64, u64)>,
    clock: Option<ClockEstimate>,
    refusal: Option<String>,
}

/// A media unit received from the vehicle during a step.
#[derive(Clone, Copy, Debug)]
struct Unit {
    number: u64,
    /// Time of hand-over at the vehicle, by this end's clock.
    sent_at: Instant,
    /// Capture time by the vehicle's clock; `None` for a unit that is no slice.
    captured_at: Option<Instant>,
    arrived_at: Instant,
}

impl Watch {
    pub(crate) fn new(first: u64) -> Self {
        Self {
            first,
            asked: Vec::new(),
            came: BTreeMap::new(),
            units: Vec::new(),
            lost: Vec::new(),
            totals: Vec::new(),
            clock: None,
            refusal: None,
        }
    }

    /// Records a question sent now, and returns its sequence number.
    pub(crate) fn ask(&mut self, now: Instant) -> u64 {
        self.asked.push(now);
        self.next() - 1
    }

    /// Returns the sequence number of the next question.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.asked.len() as u64
    }

    /// Returns why the probe must stop; `None` while it may continue.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.refusal.clone()
    }

    /// Records a media unit received now and sent at `sent_at`; `captured_at` is its capture time
    /// if it is a slice. Ignored without a send time, and beyond [`NOTES_MAX`].
    pub(crate) fn handle_unit(
        &mut self,
        number: UnitNumber,
        sent_at: Option<Instant>,
        captured_at: Option<Instant>,
        now: Instant,
    ) {
        let Some(sent_at) = sent_at else { return };
        if self.units.len() < NOTES_MAX {
            self.units.push(Unit { number: number.get(), sent_at, captured_at, arrived_at: now });
        }
    }

    /// Records the number of a media unit from the vehicle that was lost; ignored beyond
    /// [`NOTES_MAX`].
    pub(crate) fn handle_lost(&mut self, number: UnitNumber) {
        if self.lost.len() < NOTES_MAX {
            self.lost.push(number.get());
        }
    }

    /// Records when the questions of this step reached the vehicle, by its answer, and its refusal,
    /// if it has one and the answer covers a question of this step.
    pub(crate) fn handle_answer(&mut self, answer: ProbeAnswer) {
        let asked = self.first..self.next();
        let ours = || answer.arrivals.iter().filter(|(sequence, _)| asked.contains(sequence));
        self.came.extend(ours().copied());
        // An answer to earlier steps only does not count for this step.
        if let Some(refusal) = answer.refusal.as_ref().filter(|_| ours().next().is_some()) {
            self.refusal = Some(format!("the vehicle returned to its own packet size: {refusal}"));
        }
    }

    /// Records that a new session replaced the probed one, as the reason why the probe must stop.
    pub(crate) fn handle_new_session(&mut self) {
        self.refusal = Some("a new session has started".into());
    }

    /// Records the current totals and clock comparison; `payload` is the bytes of units in both
    /// directions. Totals beyond [`NOTES_MAX`] are left out.
    pub(crate) fn handle_tick(&mut self, session: &Session, payload: ByteCount, now: Instant) {
        self.clock = session.clock();
        let wire = session.links().map(|link| {
            let datagrams = link.datagrams_sent + link.datagrams_received;
            link.bytes_sent.get() + link.bytes_received.get() + HEADER_BYTES * datagrams
        });
        if self.totals.len() < NOTES_MAX {
            self.totals.push((now, wire.sum(), payload.get()));
        }
    }

    /// Returns the measurements of what was sent from `from` to `to`, or why there are none: the
    /// clocks were not compared yet. The sizes in use are left 0, for the caller to set.
    pub(crate) fn measured(&self, from: Instant, to: Instant) -> Result<Measured, String> {
        let clock = self.clock.ok_or("the clocks of both ends have not been compared yet")?;
        let within = |at: &Instant| (from..to).contains(at);
        let questions = (self.first..).zip(&self.asked).filter(|(_, at)| within(at));
        let (mut operator, mut end_to_end) = (Delays::default(), Delays::default());
        for (sequence, asked_at) in questions {
            let came_at = self.came.get(&sequence).copied();
            operator.count(came_at.map(|came| clock.to_local(came).since(*asked_at)));
            let shown_at = came_at.and_then(|came| self.shown_after(came));
            end_to_end.count(shown_at.map(|shown| shown.since(*asked_at)));
        }
        let measured = || self.totals.iter().filter(|(at, _, _)| within(at));
        let (wire_bytes, payload_bytes) = match (measured().next(), measured().next_back()) {
            (Some(first), Some(last)) => (last.1 - first.1, last.2 - first.2),
            (Some(_) | None, None) | (None, Some(_)) => (0, 0),
        };
        Ok(Measured {
            vehicle: self.media(within),
            operator,
            end_to_end,
            wire_bytes,
            payload_bytes,
            clock_error_ms: millis(clock.error()),
            up_bytes_used: 0,
            down_bytes_used: 0,
        })
    }

    /// Returns the delays of the units sent within the time. Units later than 1 s count as lost,
    /// and so do those reported lost between the first and the last of them.
    fn media(&self, within: impl Fn(&Instant) -> bool) -> Delays {
        let units: Vec<&Unit> = self.units.iter().filter(|unit| within(&unit.sent_at)).collect();
        let mut leg = Delays::default();
        for unit in &units {
            leg.count(Some(unit.arrived_at.since(unit.sent_at)));
        }
        let numbers = || units.iter().map(|unit| unit.number);
        if let (Some(first), Some(last)) = (numbers().min(), numbers().max()) {
            leg.lost +=
                self.lost.iter().filter(|lost| (first..=last).contains(lost)).count() as u64;
        }
        leg
    }

    /// Returns the time of arrival here of the first slice whose capture began at `came` of the
    /// vehicle's clock or later; `None` if none has arrived.
    fn shown_after(&self, came: Instant) -> Option<Instant> {
        let after = |unit: &&Unit| unit.captured_at.is_some_and(|at| at >= came);
        self.units.iter().filter(after).map(|unit| unit.arrived_at).min()
    }
}

impl Delays {
    fn count(&mut self, delay: Option<Duration>) {
        match delay.filter(|delay| *delay <= DELAY_MAX) {
            Some(delay) => self.delays_ms.push(millis(delay)),
            None => self.lost += 1,
        }
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Maximum number of units, of losses and of totals kept of a step, beyond which further ones are
/// ignored: more than a minute of units at 60 pictures of six slices per second.
const NOTES_MAX: usize = 32_768;
/// Length in bytes of the IPv4 and UDP headers of one datagram.
const HEADER_BYTES: u64 = 28;

/// Delay above which a message counts as lost, because it is of no use for driving.
pub(crate) const DELAY_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn unit(number: u64, sent: u64, captured: u64, arrived: u64) -> Unit {
        Unit { number, sent_at: at(sent), captured_at: Some(at(captured)), arrived_at: at(arrived) }
    }

    #[test]
    fn units_and_losses_of_the_measured_time_are_counted() {
        let mut watch = Watch::new(5);
        watch.units = vec![
            unit(1, 900, 0, 950),
            unit(2, 1_000, 0, 1_040),
            unit(5, 1_900, 0, 1_925),
            unit(4, 1_800, 0, 1_860),
            unit(7, 2_000, 0, 2_030),
        ];
        watch.lost = vec![0, 3, 6];
        let media = watch.media(|sent| (at(1_000)..at(2_000)).contains(sent));
        assert_eq!((media.delays_ms, media.lost), (vec![40.0, 25.0, 60.0], 1));
    }

    #[test]
    fn a_stamp_is_answered_by_the_first_slice_captured_after_it() {
        let mut watch = Watch::new(5);
        watch.units = vec![unit(1, 0, 99, 120), unit(2, 0, 100, 170), unit(3, 0, 103, 140)];
        assert_eq!(watch.shown_after(at(100)), Some(at(140)));
        assert_eq!(watch.shown_after(at(104)), None);
    }

    #[test]
    fn answers_to_questions_never_asked_are_nothing() {
        let mut watch = Watch::new(5);
        assert_eq!(watch.ask(at(10)), 5);
        let arrivals = vec![(4, at(30)), (5, at(30)), (6, at(40)), (u64::MAX, at(50))];
        watch.handle_answer(ProbeAnswer { arrivals, refusal: None });
        assert_eq!((watch.came.len(), watch.refusal()), (1, None));
        let refusal = Some("late".to_owned());
        let former = ProbeAnswer { arrivals: vec![(4, at(30))], refusal: refusal.clone() };
        watch.handle_answer(former);
        assert_eq!(watch.refusal(), None);
        watch.handle_answer(ProbeAnswer { arrivals: vec![(5, at(30))], refusal });
        assert!(watch.refusal().unwrap().ends_with("size: late"));
    }
}
