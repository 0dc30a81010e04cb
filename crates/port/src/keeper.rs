//! The guard's process: one thread steps the guard every 10 ms, one keeps the latch
//! ([`latch`](crate::latch)), and one logs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use anyhow::Context;
use tautline_blackbox::recorder::Trouble;
use tautline_blackbox::{Health, Recorder};
use tautline_guard::description::Entry;
use tautline_guard::frame::{BlackBox, Description, Proposal};
use tautline_guard::identity::Tick;
use tautline_guard::{Guard, Input, Latch, MachineState, Mode, Output, PERIOD};
use tautline_net::clock::Clock;
use tautline_net::datagram::Server;
use tautline_net::{random, realtime};
use tautline_units::Instant;

use crate::end::{Counts, End};
use crate::facts::{self, Sieve};
use crate::latch::Latching;

/// A guard between the sockets of a vehicle and of a machine.
#[derive(Debug)]
pub struct Keeper {
    guard: Guard,
    vehicle: End<Proposal>,
    machine: End<MachineState>,
    recorder: Option<Recorder>,
    latching: Option<Latching>,
    vehicle_facts: Sieve,
    machine_facts: Sieve,
    hooks: Vec<Hook>,
}

/// One step of the guard: its input and its output.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// Time of the step, by the guard's clock.
    pub at: Instant,
    /// Input received since the previous step.
    pub input: Input,
    /// Output that was sent, and the transition if there was one.
    pub output: Output,
    /// Counts of the frames at the guard's end towards the vehicle, since the start.
    pub vehicle: Counts,
    /// Counts of the frames at the guard's end towards the machine, since the start.
    pub machine: Counts,
    /// Health of the black box after the step; `None` without a black box.
    pub blackbox: Option<Health>,
    /// Number of earlier steps dropped because the hook's queue was full.
    pub lost: u64,
}

/// A queue of steps to a reader outside the guard's thread; a full queue never blocks the guard.
#[derive(Debug)]
struct Hook {
    steps: SyncSender<Step>,
    lost: u64,
}

impl Keeper {
    /// Creates a keeper of `guard` that serves the peers of `vehicle` and `machine`.
    pub fn new(guard: Guard, vehicle: Server, machine: Server) -> Self {
        let (vehicle, machine) = (End::new(vehicle), End::new(machine));
        Self {
            guard,
            vehicle,
            machine,
            recorder: None,
            latching: None,
            vehicle_facts: Sieve::new(facts::OF_VEHICLE),
            machine_facts: Sieve::new(facts::OF_MACHINE),
            hooks: Vec::new(),
        }
    }

    /// Records every step by `recorder`, which steps the guard from now on.
    pub fn record(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
    }

    /// Stores the latch of each stop by `latching` from now on.
    pub fn keep_latch(&mut self, latching: Latching) {
        self.latching = Some(latching);
    }

    /// Returns a queue that receives every step from now on. It holds three seconds. Steps dropped
    /// while it is full are counted in the next step that it accepts.
    pub fn hook(&mut self) -> Receiver<Step> {
        let (steps, queue) = sync_channel(STEPS_MAX);
        self.hooks.push(Hook { steps, lost: 0 });
        queue
    }

    /// Steps the guard every 10 ms, by `clock`, until `stop` is set.
    pub fn run(mut self, clock: Clock, stop: &AtomicBool) {
        realtime::raise_thread("the guard", realtime::Urgency::Safety);
        let mut due = clock.now();
        while !stop.load(Ordering::Relaxed) {
            self.step(|| clock.now());
            due += PERIOD;
            let now = clock.now();
            if now.since(due) > PERIOD {
                due = now;
            }
            clock.sleep_until(due);
        }
    }

    /// Steps the guard once. The time of the step is read after everything was received for it, so
    /// that no input is newer than the step.
    fn step(&mut self, clock: impl Fn() -> Instant) {
        let blackbox = self.recorder.as_ref().map(Recorder::health);
        let (proposal, machine) = (self.vehicle.receive(&clock), self.machine.receive(&clock));
        let now = clock();
        let input = Input {
            proposal,
            machine,
            entry: self.machine.take_entry(),
            black_box: told(blackbox),
            latch: self.latching.as_mut().map_or(Latch::Nowhere, |latching| latching.state(now)),
        };
        let output = match &mut self.recorder {
            Some(recorder) => recorder.step(&mut self.guard, &input, now),
            None => self.guard.step(&input, now),
        };
        // The machine's control frame is the most urgent, so it is sent first.
        self.machine.send(&output.control);
        self.vehicle.send(&output.status);
        self.forward(input.entry, now);
        if let Some(latching) = &mut self.latching {
            latching.keep(output.latched);
        }
        self.record_facts(now);
        let (vehicle, machine) = (self.vehicle.counts(), self.machine.counts());
        for hook in &mut self.hooks {
            let lost = hook.lost;
            let step = Step { at: now, input, output, vehicle, machine, blackbox, lost };
            match hook.steps.try_send(step) {
                Ok(()) => hook.lost = 0,
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => hook.lost += 1,
            }
        }
    }

    /// Passes an entry of the machine's description and up to [`VALUES_STEP`] of its readings on to
    /// the vehicle.
    fn forward(&mut self, entry: Option<Entry>, now: Instant) {
        if let Some(entry) = entry {
            self.vehicle.send_entry(&Description { source: now, entry });
        }
        for _ in 0..VALUES_STEP {
            let Some(value) = self.machine.take_value() else { break };
            self.vehicle.send_value(&value);
        }
    }

    /// Passes the facts of both ends to the black box's thread.
    fn record_facts(&mut self, now: Instant) {
        let ends = [
            (self.vehicle.take_fact(), &mut self.vehicle_facts),
            (self.machine.take_fact(), &mut self.machine_facts),
        ];
        let Some(recorder) = &mut self.recorder else { return };
        for (fact, sieve) in ends {
            let Some(fact) = fact else { continue };
            if let Some(about) = sieve.pass(&fact, now) {
                recorder.tell(about, fact.text(), now);
            }
        }
    }
}

/// Converts the black box's health, `None` without a recorder, to the state shown to the person.
fn told(health: Option<Health>) -> BlackBox {
    match health.map(|health| health.trouble) {
        None => BlackBox::Absent,
        Some(None) => BlackBox::Records,
        Some(Some(Trouble::DiskFull)) => BlackBox::DiskFull,
        Some(Some(Trouble::DiskRefuses)) => BlackBox::DiskRefuses,
        Some(Some(Trouble::DiskBehind)) => BlackBox::DiskBehind,
        Some(Some(Trouble::Ended)) => BlackBox::Ended,
    }
}

/// Returns an unpredictable first tick, so that no stamp from before a restart counts.
///
/// # Errors
/// When the system provides no randomness.
pub fn first_tick() -> anyhow::Result<Tick> {
    let [a, b, c, d, ..] = random::seed()?;
    // Far from the maximum, where the ticks wrap around.
    let number = u32::from_be_bytes([a, b, c, d]) >> 1;
    Ok(Tick::new(number).unwrap_or(Tick::new(1).context("1 is a tick")?))
}

/// Logs transitions, lost steps, the black box's trouble and rejected frames of the received steps,
/// and adds the transitions to `transitions`. Returns once the keeper of `steps` has ended.
pub fn tell(steps: &Receiver<Step>, transitions: &AtomicU64) {
    let mut teller = Teller::default();
    while let Ok(step) = steps.recv() {
        teller.tell(&step, transitions);
    }
}

#[derive(Debug, Default)]
struct Teller {
    last: Option<Instant>,
    vehicle: Counts,
    machine: Counts,
    blackbox: Option<Health>,
    /// Longest time between two steps since it was last logged.
    gap: Duration,
    told_at: Instant,
}

impl Teller {
    fn tell(&mut self, step: &Step, transitions: &AtomicU64) {
        let Step { at, output, vehicle, machine, lost, .. } = *step;
        if let Some(transition) = output.transition {
            transitions.fetch_add(1, Ordering::Relaxed);
            let (from, to) = (transition.from, transition.to);
            let (cause, value, limit) =
                (transition.why.cause, transition.why.value, transition.why.limit);
            let stop = transition.stop.get();
            match to {
                Mode::Manoeuvre => {
                    tracing::warn!(?from, ?cause, value, limit, stop, "the guard stops the machine")
                }
                Mode::Held | Mode::Armed | Mode::Driving | Mode::Limited => {
                    tracing::info!(?from, ?to, ?cause, value, limit, stop, "transition");
                }
            }
        }
        self.gap = self.gap.max(self.last.map_or(Duration::ZERO, |last| at.since(last)));
        self.last = Some(at);
        if lost > 0 {
            tracing::warn!(lost, "steps were not reported");
        }
        let trouble = |health: Option<Health>| health.and_then(|health| health.trouble);
        match (trouble(self.blackbox), trouble(step.blackbox)) {
            (before, Some(now)) if before != Some(now) => {
                tracing::error!("the black box does not record everything: {}", now.words());
            }
            (Some(_), None) => tracing::info!("the black box records again"),
            (_, _) => {}
        }
        self.blackbox = step.blackbox;
        if at.since(self.told_at) >= TELL_INTERVAL {
            self.told_at = at;
            if machine.skipped > 0 && self.machine.skipped == 0 {
                tracing::warn!(
                    "the machine reports numbers that only a later build of the guard knows"
                );
            }
            if machine.impossible > self.machine.impossible {
                tracing::warn!(
                    numbers = machine.impossible - self.machine.impossible,
                    "the machine reports impossible numbers: they count as unknown"
                );
            }
            if vehicle != self.vehicle {
                tracing::warn!(?vehicle, "frames from the vehicle were rejected");
            }
            let before =
                Counts { skipped: machine.skipped, impossible: machine.impossible, ..self.machine };
            if machine != before {
                tracing::warn!(?machine, "frames from the machine were rejected");
            }
            let (mode, gap) = (output.status.mode, self.gap);
            tracing::debug!(?mode, ?gap, "longest time between two steps");
            (self.vehicle, self.machine, self.gap) = (vehicle, machine, Duration::ZERO);
        }
    }
}

/// Maximum number of steps that wait in a hook's queue, beyond which they are dropped and counted:
/// three seconds.
const STEPS_MAX: usize = 300;
/// Maximum number of readings forwarded in a step: as many as a machine's side sends in that time.
const VALUES_STEP: usize = 8;
const TELL_INTERVAL: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use tautline_guard::config::Config;
    use tautline_guard::frame::Sender;
    use tautline_net::datagram::Client;

    use super::*;

    fn keeper() -> Keeper {
        let any = "127.0.0.1:0".parse().unwrap();
        let guard = Guard::new(Config::car(), Tick::new(5).unwrap());
        Keeper::new(guard, Server::open(&any).unwrap(), Server::open(&any).unwrap())
    }

    #[test]
    fn each_hook_gets_every_step_and_overflow_is_counted() {
        let mut keeper = keeper();
        let (slow, ended) = (keeper.hook(), keeper.hook());
        drop(ended);
        let extra = 3;
        for number in 0..STEPS_MAX + extra {
            keeper.step(|| Instant::from_millis(10 * number as u64));
        }
        let steps: Vec<Step> = slow.try_iter().collect();
        assert_eq!(steps.len(), STEPS_MAX);
        assert!(steps.iter().all(|step| step.output.status.mode == Mode::Held));
        keeper.step(|| Instant::from_millis(9_000));
        assert_eq!(slow.try_recv().map(|step| step.lost), Ok(extra as u64));
    }

    /// A guard that is paused just after it read its clock: frames that arrive meanwhile are not
    /// early, so no later frame counts as late.
    #[test]
    fn frames_received_during_a_guard_pause_make_no_frame_late() {
        let any = "127.0.0.1:0".parse().unwrap();
        for stood in [0, 20, 75, 106, 400] {
            let (vehicle, machine) = (Server::open(&any).unwrap(), Server::open(&any).unwrap());
            let address = machine.local_address().unwrap();
            let guard = Guard::new(Config::car(), Tick::new(5).unwrap());
            let mut keeper = Keeper::new(guard, vehicle, machine);
            let steps = keeper.hook();
            let (mut client, mut counter) = (Client::new(&address), Sender::default());
            let mut say = |millis: u64| {
                let measured_at = Instant::from_millis(7_000 + millis);
                let state = MachineState { measured_at, ..MachineState::default() };
                assert!(client.send(&counter.encode(&state)));
            };
            let mut now = 0;
            for turn in 0..290_u64 {
                now += 10;
                let is_stalled = turn == 100;
                if !is_stalled {
                    say(now);
                    keeper.step(|| Instant::from_millis(now + 1));
                    continue;
                }
                let looked = std::cell::RefCell::new((now, &mut say));
                keeper.step(|| {
                    let (now, say) = &mut *looked.borrow_mut();
                    let at = *now;
                    (at..at + stood).step_by(10).for_each(&mut **say);
                    *now += stood;
                    Instant::from_millis(at + 1)
                });
                now = looked.into_inner().0;
            }
            let ages = steps.try_iter().skip(110).map(|step| step.output.status.machine.unwrap().1);
            let oldest = ages.max().unwrap();
            assert!(oldest <= Duration::from_millis(1), "{oldest:?} after {stood} ms");
        }
    }

    #[test]
    fn a_keeper_with_a_black_box_steps_as_one_without() {
        let folder = tempfile::tempdir().unwrap();
        let config = tautline_blackbox::Config {
            folder: folder.path().to_path_buf(),
            ..tautline_blackbox::Config::default()
        };
        let signer = tautline_blackbox::Signer::from_seed(&[7; 32]);
        let (mut with, mut without) = (keeper(), keeper());
        with.record(Recorder::start(config, signer, 0).unwrap());
        let (recorded, plain) = (with.hook(), without.hook());
        for number in 0..200 {
            let now = Instant::from_millis(10 * number);
            with.step(|| now);
            without.step(|| now);
        }
        for (recorded, plain) in recorded.try_iter().zip(plain.try_iter()) {
            assert_eq!(recorded.input.black_box, BlackBox::Records);
            assert_eq!(recorded.output.status.black_box, BlackBox::Records);
            let Step { mut input, mut output, .. } = recorded;
            (input.black_box, output.status.black_box) = Default::default();
            assert_eq!((input, output), (plain.input, plain.output));
            assert!(recorded.blackbox.is_some() && plain.blackbox.is_none());
        }
    }

    #[test]
    fn black_box_trouble_is_mapped_to_the_status() {
        let health = |trouble| Some(Health { trouble, ..Health::default() });
        assert_eq!(told(None), BlackBox::Absent);
        assert_eq!(told(health(None)), BlackBox::Records);
        assert_eq!(told(health(Some(Trouble::DiskFull))), BlackBox::DiskFull);
        assert_eq!(told(health(Some(Trouble::DiskRefuses))), BlackBox::DiskRefuses);
        assert_eq!(told(health(Some(Trouble::DiskBehind))), BlackBox::DiskBehind);
        assert_eq!(told(health(Some(Trouble::Ended))), BlackBox::Ended);
    }
}
