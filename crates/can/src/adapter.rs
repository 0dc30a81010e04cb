use std::collections::BTreeMap;
use std::time::Duration;

use tautline_guard::description::{Item, Reading, Text};
use tautline_guard::{Controls, Fault, Faults, Gear, MachineState, Notices, Reported};
use tautline_units::Instant;

use crate::control::{Commanded, Control};
use crate::frame::{Frame, Id};
use crate::incoming::{Heard, Incoming, Target};
use crate::outgoing::Outgoing;

/// A machine on a CAN bus: takes controls and frames, and gives frames and the machine's state.
///
/// It has no socket and no clock. After each `handle_*`, frames are due until
/// [`poll_transmit`](Self::poll_transmit) returns `None`.
#[derive(Clone, Debug)]
pub struct Adapter {
    items: Vec<Item>,
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    by_id: BTreeMap<Id, usize>,
    /// Number of frames sent of each message, by its identifier: several entries of a map may send
    /// parts of one multiplexed message, which share its counter.
    sent: BTreeMap<Id, u64>,
    controls: Option<Controls>,
    /// Request of an action that the machine has not answered; `None` if there is none.
    asked: Option<Asked>,
    /// Number of values that the map declares.
    values: u8,
    /// Number of the next value to report; equal to `values` while none is due.
    next_value: u8,
    /// Time from which all values are reported again.
    values_due: Instant,
    is_stopping: bool,
    last_frames: usize,
    counts: Counts,
}

/// Request of an action, on its way to the machine.
#[derive(Clone, Copy, Debug)]
struct Asked {
    action: u8,
    /// `true` once frames carry the request: its answer no longer shows that of an earlier one.
    is_begun: bool,
    /// Time of the first frame with the request; `None` before it.
    sent_at: Option<Instant>,
    /// `true` if the request was repeated since the last controls.
    is_kept: bool,
}

/// Counts of a bus's frames since the start, by their fate.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Counts {
    /// Frames given to be sent on the bus.
    pub sent: u64,
    /// Frames received whose signals were taken.
    pub taken: u64,
    /// Frames received whose message the map does not name.
    pub other: u64,
    /// Frames received with fewer bytes than their message, which are left out.
    pub short: u64,
    /// Frames received with a wrong checksum, which are left out.
    pub wrong_checksum: u64,
    /// Frames received with the counter of the one before, which are left out.
    pub repeated: u64,
    /// Frames received before which others are missing, by the counter; they are also in `taken`.
    pub skipped: u64,
}

impl Adapter {
    pub(crate) fn new(items: Vec<Item>, outgoing: Vec<Outgoing>, incoming: Vec<Incoming>) -> Self {
        let values = items.iter().filter(|item| matches!(item, Item::Value(_))).count() as u8;
        let ids = incoming.iter().enumerate().map(|(index, it)| (it.message.id, index));
        Self {
            items,
            by_id: ids.collect(),
            sent: BTreeMap::new(),
            controls: None,
            asked: None,
            values,
            next_value: values,
            values_due: Instant::ZERO,
            is_stopping: false,
            last_frames: outgoing.len(),
            outgoing,
            incoming,
            counts: Counts::default(),
        }
    }

    /// Takes the signals of a frame from the bus, or leaves it out, and counts it.
    pub fn handle_frame(&mut self, frame: &Frame, now: Instant) {
        let Some(index) = self.by_id.get(&frame.id()) else {
            self.counts.other += 1;
            return;
        };
        let count = match self.incoming[*index].handle(frame.data(), now) {
            Heard::Taken => &mut self.counts.taken,
            Heard::Skipped => {
                self.counts.taken += 1;
                &mut self.counts.skipped
            }
            Heard::Short => &mut self.counts.short,
            Heard::Checksum => &mut self.counts.wrong_checksum,
            Heard::Repeated => &mut self.counts.repeated,
        };
        *count += 1;
    }

    /// Takes controls, which the next frames follow. `is_alone`: true if they are not the guard's,
    /// but those with which the machine brakes by itself; then, or if the machine has a fault, the
    /// frames have the map's values of a stop. The guard's first ones start the sending; those of
    /// the machine before them are ignored, so that nothing is sent on a bus whose machine nobody
    /// drives by a guard.
    pub fn handle_controls(&mut self, controls: &Controls, is_alone: bool, now: Instant) {
        if is_alone && self.controls.is_none() {
            return;
        }
        self.controls = Some(controls.sane());
        // A request that is no longer repeated is over, answered or not.
        self.asked = self.asked.filter(|asked| asked.is_kept);
        if let Some(asked) = &mut self.asked {
            asked.is_kept = false;
        }
        self.is_stopping = is_alone || !self.faults(now).is_empty();
        if !self.is_stopping {
            self.outgoing.iter_mut().for_each(Outgoing::rest);
        }
    }

    /// Passes a person's request of an action to the machine. Returns whether the machine does it;
    /// `None` while that is not known: then this is called again before the next controls.
    ///
    /// The answer is the signal that the map names for it. Frames carry the request from the moment
    /// at which that signal shows no answer, so that an earlier one does not count, until it shows
    /// one. Without such a signal, the machine has accepted once a frame carries the request.
    pub fn request(&mut self, action: u8, now: Instant) -> Option<bool> {
        let before = self.asked.filter(|asked| asked.action == action);
        let new = Asked { action, is_begun: false, sent_at: None, is_kept: true };
        let mut asked = Asked { is_kept: true, ..before.unwrap_or(new) };
        let answer = self.answer(action, now);
        asked.is_begun |= matches!(answer, Answer::Unnamed | Answer::None);
        self.asked = Some(asked);
        let sent_at = asked.sent_at?;
        let is_accepted = match answer {
            Answer::Unnamed => Some(true),
            Answer::Given { is_accepted, at } if at > sent_at => Some(is_accepted),
            Answer::Given { .. } | Answer::None | Answer::Unknown => None,
        }?;
        self.asked = None;
        Some(is_accepted)
    }

    /// Returns the next value to report, with its number; `None` if none is due. All are due ten
    /// times a second; a number that is not known is NaN, and such a text is empty.
    pub fn reading(&mut self, now: Instant) -> Option<(u8, Reading)> {
        if self.next_value == self.values {
            if self.values == 0 || now < self.values_due {
                return None;
            }
            (self.next_value, self.values_due) = (0, now + READING_INTERVAL);
        }
        let number = self.next_value;
        self.next_value += 1;
        let reading = self.uses().find_map(|(message, its)| match &its.target {
            Target::Number(value, curve) if *value == number => {
                let value = message.value(its, curve, now).map_or(f32::NAN, |value| value as f32);
                Some(Reading::Number(value))
            }
            Target::Text(value) if *value == number => {
                let signal = &message.message.signals[its.index];
                let text = match message.known(its, now) {
                    Some(raw) => match signal.name_of(raw) {
                        Some(name) => name.to_owned(),
                        None => signal.physical(raw).to_string(),
                    },
                    None => String::new(),
                };
                Some(Reading::Text(Text::new(&text).unwrap_or_default()))
            }
            _ => None,
        });
        Some((number, reading.unwrap_or(Reading::Number(f32::NAN))))
    }

    /// Returns the declared axes, actions and values.
    pub fn description(&self) -> &[Item] {
        &self.items
    }

    /// Begins the end: from now on, only one last frame of each message that has one is sent, and
    /// none if no frame was sent before.
    pub fn handle_end(&mut self) {
        if self.controls.take().is_some() {
            self.last_frames = 0;
        }
    }

    /// Returns the next frame that is due at `now`; `None` if there is none.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Frame> {
        let frame = match self.controls {
            Some(controls) => self.due_frame(controls, now),
            None => self.last_frame(),
        }?;
        self.counts.sent += 1;
        Some(frame)
    }

    /// Returns the state of the machine by the messages that came in time; speeds, yaw rate,
    /// steering angle and axes are NaN, and other numbers `None`, while they are not known.
    pub fn state(&self, now: Instant) -> MachineState {
        let mut state = MachineState {
            measured_at: now,
            speed: f32::NAN,
            sideways_speed: f32::NAN,
            yaw_rate: f32::NAN,
            steering_angle: f32::NAN,
            gear: self.gear(now).unwrap_or_default(),
            faults: self.faults(now),
            notices: Notices::NONE,
            told: Reported::default(),
            ..MachineState::default()
        };
        for (message, its) in self.uses() {
            let value = |curve| message.value(its, curve, now).map(|value| value as f32);
            match &its.target {
                Target::Speed { curve, is_signed_by_gear } => {
                    let is_back = *is_signed_by_gear && state.gear == Gear::Reverse;
                    let speed = value(curve).unwrap_or(f32::NAN);
                    state.speed = if is_back { -speed } else { speed };
                }
                Target::SidewaysSpeed(curve) => {
                    state.sideways_speed = value(curve).unwrap_or(f32::NAN);
                }
                Target::YawRate(curve) => state.yaw_rate = value(curve).unwrap_or(f32::NAN),
                Target::Axis(axis, curve) => {
                    state.axes.0[usize::from(*axis)] = value(curve).unwrap_or(f32::NAN);
                }
                Target::SteeringAngle(curve) => {
                    state.steering_angle = value(curve).unwrap_or(f32::NAN);
                }
                Target::AccelerationAlong(curve) => state.told.acceleration_along = value(curve),
                Target::AccelerationAcross(curve) => state.told.acceleration_across = value(curve),
                Target::Charge(curve) => state.told.charge = value(curve),
                Target::Notice(notice, condition) => {
                    let holds = message.holds(its, condition, now);
                    state.notices = state.notices.with_if(*notice, holds);
                }
                Target::Action(action, condition) => {
                    let holds = message.holds(its, condition, now);
                    state.actions = state.actions.with_if(*action, holds);
                }
                Target::Gear { .. }
                | Target::Fault(..)
                | Target::Number(..)
                | Target::Text(_)
                | Target::Answer { .. } => {}
            }
        }
        state
    }

    /// Returns the shortest period of the messages that are sent; `None` if none is sent
    /// periodically.
    pub fn period(&self) -> Option<Duration> {
        self.outgoing.iter().filter_map(Outgoing::period).min()
    }

    /// Returns the counts since the start.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns whether the last controls were not the guard's, or the machine had a fault then.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Returns the identifiers of the messages that are received.
    pub fn ids(&self) -> impl Iterator<Item = Id> {
        self.by_id.keys().copied()
    }

    /// Returns the messages of the map that are sent.
    pub(crate) fn outgoing(&self) -> &[Outgoing] {
        &self.outgoing
    }

    /// Returns the messages of the map that are received.
    pub(crate) fn incoming(&self) -> &[Incoming] {
        &self.incoming
    }

    fn due_frame(&mut self, controls: Controls, now: Instant) -> Option<Frame> {
        let is_stopping = self.is_stopping;
        let due = |it: &&mut Outgoing| it.due(is_stopping).is_some_and(|due| due <= now);
        let outgoing = self.outgoing.iter_mut().find(due)?;
        let count = self.sent.entry(outgoing.id).or_default();
        *count += 1;
        let asked = self.asked.as_mut().filter(|asked| asked.is_begun);
        let request = asked.as_ref().map(|asked| asked.action);
        if let Some(asked) = asked
            && outgoing.follows(Control::Request(asked.action))
        {
            asked.sent_at.get_or_insert(now);
        }
        outgoing.frame(&Commanded { controls, request }, is_stopping, *count - 1, now)
    }

    /// Returns what the machine says about a request of this action.
    fn answer(&self, action: u8, now: Instant) -> Answer {
        let answers = self.uses().find_map(|(message, its)| match &its.target {
            Target::Answer { action: its_action, accepted, refused } if *its_action == action => {
                Some((message, its, accepted, refused))
            }
            _ => None,
        });
        let Some((message, its, accepted, refused)) = answers else { return Answer::Unnamed };
        match (message.known(its, now), its.heard_at) {
            (Some(raw), Some(at)) if accepted.contains(&raw) => {
                Answer::Given { is_accepted: true, at }
            }
            (Some(raw), Some(at)) if refused.contains(&raw) => {
                Answer::Given { is_accepted: false, at }
            }
            (Some(_), Some(_)) => Answer::None,
            _ => Answer::Unknown,
        }
    }

    fn last_frame(&mut self) -> Option<Frame> {
        while let Some(outgoing) = self.outgoing.get(self.last_frames) {
            self.last_frames += 1;
            let count = self.sent.entry(outgoing.id).or_default();
            if let Some(frame) = outgoing.last_frame(*count) {
                *count += 1;
                return Some(frame);
            }
        }
        None
    }

    fn faults(&self, now: Instant) -> Faults {
        let lost = self.incoming.iter().filter(|message| message.is_lost(now));
        let lost = lost.filter_map(|message| message.fault);
        let told = self.uses().filter_map(|(message, its)| {
            let Target::Fault(fault, condition) = &its.target else { return None };
            message.holds(its, condition, now).then_some(*fault)
        });
        let gears = self.uses().filter(|(message, its)| {
            let is_gear = matches!(its.target, Target::Gear { .. });
            // A gear that the map does not name is not one to drive in.
            is_gear && message.known(its, now).is_some_and(|raw| its.target.gear(raw).is_none())
        });
        lost.chain(told).chain(gears.map(|_| Fault::Gear)).collect()
    }

    /// Returns the gear that the machine reports, or the requested one while it reports none or
    /// neither; `None` before the first controls.
    fn gear(&self, now: Instant) -> Option<Gear> {
        let told = self
            .uses()
            .find_map(|(message, its)| its.target.gear(message.known(its, now)?).flatten());
        told.or(self.controls.map(|controls| controls.gear))
    }

    fn uses(&self) -> impl Iterator<Item = (&Incoming, &crate::incoming::Use)> {
        self.incoming.iter().flat_map(|message| message.uses.iter().map(move |its| (message, its)))
    }
}

/// Answer of the machine to a request, by the signal that the map names for it.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// The map names no signal.
    Unnamed,
    /// The signal does not come.
    Unknown,
    /// The signal shows no answer.
    None,
    /// The signal shows an answer, in a frame that came at `at`.
    Given { is_accepted: bool, at: Instant },
}

/// Time between two reports of a value: people do not read faster.
const READING_INTERVAL: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
