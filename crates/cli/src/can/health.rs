//! Condition of a bus, and what of it is logged.

use std::time::Duration;

use tautline_net::can_bus::Address;
use tautline_units::Instant;

/// Condition of a bus: sound once it has worked without a failure for half a second.
///
/// Each cause of a failure is logged once, until another one follows or the bus was sound.
#[derive(Debug)]
pub(crate) struct Health {
    bus: Address,
    state: State,
    told: Option<String>,
    /// Instant since which every frame is refused, because the transmit queue is full; `None` while
    /// frames are accepted.
    full_since: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The bus has failed, its transmit queue has refused every frame for 30 ms, or nothing was
    /// tried yet.
    Failed,
    /// The controller is off the bus; only its restart or a frame shows that it is back.
    Off,
    /// The bus has worked since this instant, too short a time to count as sound.
    Settling(Instant),
    Sound,
}

impl Health {
    /// Creates the condition of a bus that is not open yet.
    pub(crate) fn new(bus: Address) -> Self {
        Self { bus, state: State::Failed, told: None, full_since: None }
    }

    /// Returns whether the bus is sound.
    pub(crate) fn is_sound(&self) -> bool {
        self.state == State::Sound
    }

    /// Records a failure for which the bus is closed, and logs `cause` if it was not the last one
    /// logged.
    pub(crate) fn fail(&mut self, cause: impl Into<String>) {
        self.state = State::Failed;
        self.full_since = None;
        self.tell(cause.into());
    }

    /// Records that the controller is off the bus, and logs it if that was not the last cause
    /// logged.
    pub(crate) fn off(&mut self) {
        self.state = State::Off;
        self.tell("its controller is off the bus after too many errors".into());
    }

    /// Records the opening of the bus, or a frame that it accepted: a bus that failed begins to
    /// settle.
    pub(crate) fn work(&mut self, now: Instant) {
        self.full_since = None;
        match self.state {
            State::Failed => self.state = State::Settling(now),
            State::Off | State::Settling(_) | State::Sound => {}
        }
    }

    /// Records the controller's restart, or a received frame: a bus that failed, or whose
    /// controller was off the bus, begins to settle.
    pub(crate) fn hear(&mut self, now: Instant) {
        match self.state {
            State::Failed | State::Off => self.state = State::Settling(now),
            State::Settling(_) | State::Sound => {}
        }
    }

    /// Records a frame that the full transmit queue refused. Once every frame was refused for 30
    /// ms, the bus counts as failed, and that is logged.
    pub(crate) fn refuse(&mut self, now: Instant) {
        let since = *self.full_since.get_or_insert(now);
        if now.since(since) >= FULL_MAX {
            self.state = match self.state {
                State::Off => State::Off,
                State::Failed | State::Settling(_) | State::Sound => State::Failed,
            };
            self.tell(
                "its transmit queue is full (ENOBUFS): nobody acknowledges, the bitrate is wrong, \
                 or the bus is overloaded"
                    .into(),
            );
        }
    }

    /// Counts the bus as sound, and logs that, if it has worked for 0.5 s without a failure.
    pub(crate) fn settle(&mut self, now: Instant) {
        let State::Settling(since) = self.state else { return };
        if now.since(since) < SETTLING {
            return;
        }
        self.state = State::Sound;
        self.told = None;
        tracing::info!(bus = %self.bus, "the bus works");
    }

    fn tell(&mut self, cause: String) {
        if self.told.as_ref() != Some(&cause) {
            tracing::warn!("the bus {}: {cause}; retrying, the machine is stopped", self.bus);
            self.told = Some(cause);
        }
    }
}

/// Time for which every frame is refused before that counts as a failure: three periods of the
/// guard.
const FULL_MAX: Duration = Duration::from_millis(30);
/// Time without a failure after which a bus counts as sound: longer than a retry takes, so that a
/// bus that opens and fails is not reported each time.
const SETTLING: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn sound() -> Health {
        let mut health = Health::new("can0".parse().unwrap());
        health.work(at(0));
        health.settle(at(499));
        assert!(!health.is_sound());
        health.settle(at(500));
        assert!(health.is_sound());
        health
    }

    #[test]
    fn a_bus_that_opens_and_fails_is_never_sound_and_told_once() {
        let mut health = Health::new("can0".parse().unwrap());
        for millis in (0..5_000).step_by(200) {
            health.work(at(millis));
            health.settle(at(millis + 100));
            health.fail("Network is down");
            assert!(!health.is_sound());
            assert_eq!(health.told.as_deref(), Some("Network is down"));
        }
        health.fail("No such device");
        assert_eq!(health.told.as_deref(), Some("No such device"), "another cause");
        health.work(at(6_000));
        health.settle(at(6_500));
        assert!(health.is_sound() && health.told.is_none());
    }

    #[test]
    fn a_full_queue_is_a_failure_after_three_periods() {
        let mut health = sound();
        health.refuse(at(1_000));
        health.refuse(at(1_029));
        assert!(health.is_sound());
        health.work(at(1_030));
        health.refuse(at(1_040));
        health.refuse(at(1_069));
        assert!(health.is_sound(), "one was accepted between");
        health.refuse(at(1_070));
        assert!(!health.is_sound());
        health.work(at(1_080));
        health.settle(at(1_580));
        assert!(health.is_sound());
    }

    #[test]
    fn a_controller_off_the_bus_is_back_by_a_restart_or_a_frame() {
        let mut health = sound();
        health.off();
        health.work(at(1_000));
        health.settle(at(9_000));
        assert!(!health.is_sound(), "the kernel accepts frames all the same");
        health.hear(at(9_000));
        health.settle(at(9_500));
        assert!(health.is_sound());
    }
}
