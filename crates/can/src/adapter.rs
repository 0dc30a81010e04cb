use std::collections::BTreeMap;
use std::time::Duration;

use tautline_guard::{Controls, Fault, Faults, Gear, MachineState, Notices, Reported};
use tautline_units::Instant;

use crate::frame::{Frame, Id};
use crate::incoming::{Heard, Incoming, Target};
use crate::outgoing::Outgoing;

/// A machine on a CAN bus: takes controls and frames, and gives frames and the machine's state.
///
/// It has no socket and no clock. After each `handle_*`, frames are due until
/// [`poll_transmit`](Self::poll_transmit) returns `None`.
#[derive(Clone, Debug)]
pub struct Adapter {
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    by_id: BTreeMap<Id, usize>,
    /// Number of frames sent of each message, by its identifier: several entries of a map may send
    /// parts of one multiplexed message, which share its counter.
    sent: BTreeMap<Id, u64>,
    controls: Option<Controls>,
    is_stopping: bool,
    last_frames: usize,
    counts: Counts,
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
    pub(crate) fn new(outgoing: Vec<Outgoing>, incoming: Vec<Incoming>) -> Self {
        let ids = incoming.iter().enumerate().map(|(index, it)| (it.message.id, index));
        Self {
            by_id: ids.collect(),
            sent: BTreeMap::new(),
            controls: None,
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
        self.is_stopping = is_alone || !self.faults(now).is_empty();
        if !self.is_stopping {
            self.outgoing.iter_mut().for_each(Outgoing::rest);
        }
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
            Some(controls) => self.due_frame(&controls, now),
            None => self.last_frame(),
        }?;
        self.counts.sent += 1;
        Some(frame)
    }

    /// Returns the instant at which the next frame is due or a received message counts as lost;
    /// `None` if neither is ahead.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due = self.outgoing.iter().filter_map(|it| it.due(self.is_stopping));
        let due = due.filter(|_| self.controls.is_some());
        due.chain(self.incoming.iter().filter_map(Incoming::lost_at)).min()
    }

    /// Returns the state of the machine by the messages that came in time; speed and steering angle
    /// are NaN, and other numbers `None`, while they are not known.
    pub fn state(&self, now: Instant) -> MachineState {
        let mut state = MachineState {
            measured_at: now,
            speed: f32::NAN,
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
                Target::Light(light, condition) => {
                    let holds = message.holds(its, condition, now);
                    state.actions = state.actions.with_if(*light, holds);
                }
                Target::Gear { .. } | Target::Fault(..) => {}
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

    fn due_frame(&mut self, controls: &Controls, now: Instant) -> Option<Frame> {
        let is_stopping = self.is_stopping;
        let due = |it: &&mut Outgoing| it.due(is_stopping).is_some_and(|due| due <= now);
        let outgoing = self.outgoing.iter_mut().find(due)?;
        let count = self.sent.entry(outgoing.id).or_default();
        *count += 1;
        outgoing.frame(controls, is_stopping, *count - 1, now)
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

#[cfg(test)]
mod tests;
