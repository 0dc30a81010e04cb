//! A machine on a CAN bus, for the guard's port.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use tautline_can::{Adapter, Counts};
use tautline_guard::description::{Item, Reading};
use tautline_guard::{Controls, Fault, Machine, MachineState, PERIOD};
use tautline_net::metrics::{Labels, Page, Unit};
use tautline_units::Instant;

use super::bus::{Facts, Link};

/// A machine on a bus: an adapter that exchanges frames with the bus's thread.
///
/// When it is dropped without a panic, the adapter's last frames are sent. After a panic they are
/// not: they may release the machine, of which nothing is known then.
#[derive(Debug)]
pub(crate) struct BusMachine {
    adapter: Adapter,
    link: Link,
    shown: Arc<Shown>,
}

/// Latest state and counts of the machine and of its bus, for the metrics.
#[derive(Debug)]
pub(crate) struct Shown {
    newest: Mutex<Newest>,
    bus: Arc<Facts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    state: MachineState,
    counts: Counts,
    is_stopping: bool,
}

impl BusMachine {
    /// Creates a machine whose `adapter` exchanges frames with a bus over `link`.
    pub(crate) fn new(adapter: Adapter, link: Link) -> Self {
        let shown = Shown { newest: Mutex::default(), bus: link.facts().clone() };
        Self { adapter, link, shown: Arc::new(shown) }
    }

    /// Returns the values for the metrics, which follow the machine.
    pub(crate) fn shown(&self) -> Arc<Shown> {
        self.shown.clone()
    }

    fn is_sound(&self) -> bool {
        self.link.facts().is_sound.load(Ordering::Relaxed)
    }

    fn follow(&mut self, controls: &Controls, is_alone: bool, now: Instant) -> Result<(), Fault> {
        // A bus that fails is a fault too, during which the values of a stop are sent.
        self.adapter.handle_controls(controls, is_alone || !self.is_sound(), now);
        match self.send(now) {
            true => Ok(()),
            false => Err(Fault::Unreachable),
        }
    }

    /// Gives the due frames to the bus; returns whether its thread takes them.
    fn send(&mut self, now: Instant) -> bool {
        let frames = std::iter::from_fn(|| self.adapter.poll_transmit(now));
        self.link.send(frames)
    }

    fn show(&mut self, state: &MachineState) {
        let mut newest = match self.shown.newest.try_lock() {
            Ok(newest) => newest,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // The reader of the metrics has it; the next turn shows more.
            Err(TryLockError::WouldBlock) => return,
        };
        newest.state = *state;
        newest.counts = self.adapter.counts();
        newest.is_stopping = self.adapter.is_stopping();
    }
}

impl Machine for BusMachine {
    fn period(&self) -> Duration {
        self.adapter.period().unwrap_or(PERIOD)
    }

    fn state(&mut self, now: Instant) -> MachineState {
        while let Some((frame, at)) = self.link.receive() {
            self.adapter.handle_frame(&frame, at);
        }
        let mut state = self.adapter.state(now);
        state.faults = state.faults.with_if(Fault::Unreachable, !self.is_sound());
        self.show(&state);
        state
    }

    fn description(&self) -> &[Item] {
        self.adapter.description()
    }

    fn request(&mut self, action: u8, now: Instant) -> Option<bool> {
        self.adapter.request(action, now)
    }

    fn reading(&mut self, now: Instant) -> Option<(u8, Reading)> {
        self.adapter.reading(now)
    }

    fn apply(&mut self, controls: &Controls, now: Instant) -> Result<(), Fault> {
        self.follow(controls, false, now)
    }

    fn apply_alone(&mut self, controls: &Controls, now: Instant) -> Result<(), Fault> {
        self.follow(controls, true, now)
    }
}

impl Drop for BusMachine {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.adapter.handle_end();
            self.send(Instant::ZERO);
        }
    }
}

impl Shown {
    /// Renders the page of metrics.
    pub(crate) fn page(&self) -> String {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let Newest { state, counts, is_stopping } = *newest;
        drop(newest);
        let (bus, other) = (&self.bus, |unit: &str| Some(Unit::Other(unit.to_owned())));
        let value = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut page = Page::new("tautline_can");
        let is_sound = bus.is_sound.load(Ordering::Relaxed);
        page.gauge("bus_works", None, "1 while the bus works", is_sound.into());
        let stopping = "1 while the values of a stop are sent: guard silent, or a fault";
        page.gauge("stopping", None, stopping, is_stopping.into());
        let speed = "Speed that the machine reports";
        page.gauge("speed", other("metres_per_second"), speed, state.speed.into());
        let angle = "Angle of the road wheels that the machine reports";
        page.gauge("steering_angle", other("radians"), angle, state.steering_angle.into());
        let faults = state.faults.iter();
        let faults = faults.map(|it| (Labels::of("fault", &format!("{it:?}")), 1.0));
        page.gauges("faults", None, "Faults that the machine has now", faults);
        let fates = [
            ("sent", counts.sent),
            ("taken", counts.taken),
            ("other", counts.other),
            ("short", counts.short),
            ("wrong_checksum", counts.wrong_checksum),
            ("repeated", counts.repeated),
            ("skipped", counts.skipped),
        ];
        let fates = fates.map(|(fate, count)| (Labels::of("fate", fate), count));
        page.counters("frames", None, "Frames by their fate", fates);
        let drops = [
            ("bus_away", value(&bus.away)),
            ("bus_superseded", value(&bus.superseded)),
            ("bus_overflow", value(&bus.overflow)),
            ("bus_unread", value(&bus.unread)),
        ];
        let drops = drops.map(|(name, count)| (Labels::of("name", name), count));
        page.counters("drops", None, "Frames dropped between machine and bus", drops);
        let failures = "Failures for which the bus was opened anew";
        page.counter("bus_failures", None, failures, value(&bus.failures));
        let errors = "Errors of the bus that its controller reported";
        page.counter("bus_errors", None, errors, value(&bus.errors));
        page.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use tautline_can::{Database, Mapping};
    use tautline_net::can_bus::Address;

    use super::*;
    use crate::can::bus::exchange;

    #[test]
    fn a_bus_that_does_not_work_is_a_fault_and_shown() {
        let database = Database::parse(include_str!("../../../../adapters/can/car.dbc")).unwrap();
        let map = Mapping::parse(include_str!("../../../../adapters/can/car.toml"));
        let adapter = map.resolve(Ok(&database)).unwrap();
        let simulator = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = Address::Udp(simulator.local_addr().unwrap());
        let (link, _exchange) = exchange(address, adapter.ids()).unwrap();
        let mut machine = BusMachine::new(adapter, link);
        assert_eq!(machine.period(), Duration::from_millis(10));
        let now = Instant::from_millis(1);
        assert!(machine.state(now).faults.contains(Fault::Unreachable));
        assert_eq!(machine.apply(&Controls::default(), now), Ok(()));
        machine.link.facts().is_sound.store(true, Ordering::Relaxed);
        let _ = machine.state(now);
        let page = machine.shown().page();
        for line in [
            "tautline_can_bus_works 1.0\n",
            "tautline_can_faults{fault=\"Speed\"} 1.0\n",
            "tautline_can_frames_total{fate=\"sent\"} 0\n",
            "tautline_can_drops_total{name=\"bus_away\"} 0\n",
        ] {
            assert!(page.contains(line), "{line}: {page}");
        }
    }
}
