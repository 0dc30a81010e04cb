//! The operator's input on its way to the vehicle.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tautline_message::{Command, SessionState, VideoFeedback};
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_transport::ChannelNumber;
use tautline_units::{ByteCount, Instant};

use crate::console::{ConsoleId, Holding, Hub};
use crate::reception::Shared;

/// Sender of the driving console's commands, which it numbers and dates. It also sends feedback
/// about the received video.
///
/// A console without input sends no command, and then the vehicle stops by itself. Its lost slices
/// are recovered all the same, because this process sends the feedback itself.
pub(crate) struct Input {
    hub: Arc<Hub>,
    shared: Arc<Shared>,
    /// Function that sends a unit on a channel, to arrive within a time from now.
    send: Box<dyn Fn(ChannelNumber, Vec<u8>, Duration) + Send>,
    clock: Clock,
    sequence: u64,
    fed_back: Option<(VideoFeedback, Instant)>,
    /// Console that drives, and console that may take over, if any.
    holding: Holding,
    /// True if received slices are recorded; then pictures are requested also when no console shows
    /// them.
    records: bool,
    bystander: Bystander,
    /// Time of the latest command of the driving console, or of an emergency stop while none
    /// drives; zero before the first.
    driven_at: Instant,
}

impl Input {
    /// Creates an input without a driving console that passes units to `send`. With `records`,
    /// every picture is requested even if no console shows them.
    pub(crate) fn new(
        hub: Arc<Hub>,
        shared: Arc<Shared>,
        send: impl Fn(ChannelNumber, Vec<u8>, Duration) + Send + 'static,
        clock: Clock,
        records: bool,
    ) -> Self {
        let (sequence, fed_back, holding) = (0, None, Holding::default());
        let (bystander, driven_at) = (Bystander::default(), Instant::ZERO);
        Self {
            hub,
            shared,
            send: Box::new(send),
            clock,
            sequence,
            fed_back,
            holding,
            records,
            bystander,
            driven_at,
        }
    }

    /// Handles a change of the driving console. Commands of the former one are dropped from now on;
    /// if none follows, the vehicle learns at once that it is gone. Feedback about the video is
    /// sent at once too.
    pub(crate) fn handle_console(&mut self, holding: Holding) {
        let former = std::mem::replace(&mut self.holding, holding);
        if let (Some(gone), None) = (former.console, holding.console) {
            // The page may have ended without a last command. Report it to the vehicle, so that it
            // need not wait.
            let command =
                Command { console: gone.0.get(), absences: CONSOLE_GONE, ..Command::default() };
            self.send_dated(command, self.clock.now());
        }
        self.fed_back = None;
        self.feed_back();
    }

    /// Forwards a command of the driving console or of its successor, unless it is too old or dated
    /// ahead: a late command must not look fresh to the vehicle. Of any other console, only an
    /// emergency stop has an effect: it is added to the driving console's commands, and also sent
    /// alone if none of those came for 100 ms. A stop counts at any age.
    ///
    /// The console dates its commands in Unix time by this machine's clock, 0 for unknown.
    pub(crate) fn handle_command(&mut self, command: Command) {
        let now = self.clock.now();
        let number = |console: Option<ConsoleId>| console.map_or(0, |console| console.0.get());
        let (driver, successor) = (number(self.holding.console), number(self.holding.successor));
        let succeeds = successor != 0 && successor == command.console;
        let command = Command { successor, ..command };
        if succeeds {
            // The command names its console; the vehicle uses only its acts until the guard has
            // handed over.
            return self.send_command(command, now);
        }
        if driver != command.console && command.emergency_stop_number == 0 {
            // The command was on the way while another console took over.
            self.hub.requests_refused.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if driver != command.console && driver != 0 {
            self.bystander.note(command.emergency_stop_number, now);
            if now.since(self.driven_at) >= DRIVER_QUIET {
                // The vehicle does not follow a command of this age; only the emergency stop
                // counts.
                let emergency_stop_number = command.emergency_stop_number;
                let stop = Command { console: driver, emergency_stop_number, ..Command::default() };
                self.send_dated(stop, now - STALE);
            }
            return;
        }
        self.driven_at = now;
        let command = match driver {
            // No console drives, so only an emergency stop is accepted, from any console.
            0 => stop_alone(&command),
            _ => self.bystander.add_to(command, now),
        };
        self.send_command(command, now);
    }

    fn send_command(&mut self, command: Command, now: Instant) {
        let age = self.age(&command, now);
        let age_max = self.shared.command_age_max();
        // An emergency stop counts at any age. This clock cannot date an earlier command.
        let age_max = age_max.min(now.since(Instant::ZERO));
        let Some(fresh) = age.filter(|age| *age <= age_max) else {
            let hub = &self.hub;
            let count = if age.is_none() { &hub.commands_ahead } else { &hub.commands_stale };
            count.fetch_add(1, Ordering::Relaxed);
            if is_stop(&command) {
                self.send_dated(stop_alone(&command), now - STALE);
            }
            return;
        };
        self.send_dated(command, now - fresh);
    }

    /// Returns how long a command was on its way here; `None` if its page dates it ahead of this
    /// clock by more than the clocks' error.
    fn age(&self, command: &Command, now: Instant) -> Option<Duration> {
        let unix = Instant::from_nanos(self.clock.unix_nanos(now));
        unix.age(command.sent_at, PAGE_ERROR)
    }

    /// Numbers a command and sends it with the date `sent_at`, by this process's clock.
    fn send_dated(&mut self, command: Command, sent_at: Instant) {
        let age_max = self.shared.command_age_max();
        self.sequence += 1;
        let command = Command { sequence: self.sequence, sent_at, ..command };
        let deadline = if is_stop(&command) { age_max.max(DEADLINE) } else { age_max };
        self.send(channels::COMMAND, command.encode(), deadline);
    }

    /// Sends strip reports and encoder requests to the vehicle if they have changed, and otherwise
    /// every 100 ms because a message may be lost. If no console drives, nothing records and no
    /// probe runs, it requests no IDR and the fewest pictures. Does nothing without an established
    /// session.
    pub(crate) fn feed_back(&mut self) {
        if self.shared.standing().state != SessionState::Established {
            return;
        }
        let now = self.clock.now();
        let strips = self.shared.strips();
        let asked = self.hub.take_feedback();
        let is_looked_at =
            self.holding.console.is_some() || self.records || self.shared.is_watched();
        let (keyframe_strips, picture_interval) = if is_looked_at {
            (strips.keyframes | asked.keyframe_strips, asked.picture_interval)
        } else {
            // No console watches: request no keyframes, and only the few pictures needed to measure
            // the links.
            (0, VideoFeedback::PICTURE_INTERVAL_MAX)
        };
        let (strips, pixels_max) = (strips.reports, asked.pixels_max);
        let feedback = VideoFeedback { strips, keyframe_strips, picture_interval, pixels_max };
        let told = |(told, at): &(VideoFeedback, Instant)| {
            *told == feedback && now.since(*at) < FEEDBACK_REPEAT
        };
        if self.fed_back.as_ref().is_some_and(told) {
            return;
        }
        self.fed_back = Some((feedback, now));
        self.send(channels::VIDEO_FEEDBACK, feedback.encode(), DEADLINE);
    }

    fn send(&self, channel: ChannelNumber, unit: Vec<u8>, deadline: Duration) {
        self.shared.note_sent(ByteCount::of(&unit));
        (self.send)(channel, unit, deadline);
    }
}

/// Returns what counts of a command that must not drive: whose it is, its emergency stop, and what
/// prevents its person from driving. Every set point is left out, with the brake pressed.
fn stop_alone(command: &Command) -> Command {
    Command {
        sent_at: command.sent_at,
        brake: 1.0,
        emergency_stop: command.emergency_stop,
        console: command.console,
        emergency_stop_number: command.emergency_stop_number,
        dead_man: command.dead_man,
        absences: command.absences,
        successor: command.successor,
        ..Command::default()
    }
}

/// Returns whether a command asks for an emergency stop, by number or by flag.
fn is_stop(command: &Command) -> bool {
    command.emergency_stop || command.emergency_stop_number != 0
}

/// Latest emergency stop requested by a console that does not drive. It is merged into the driving
/// console's commands, so that only one console steers.
#[derive(Debug, Default)]
struct Bystander {
    asked: Option<(u32, Instant)>,
}

impl Bystander {
    fn note(&mut self, number: u32, now: Instant) {
        self.asked = Some((number, now));
    }

    /// Returns the driving console's command with the other console's emergency stop added, if that
    /// is at most 250 ms old; the driving console's own stop has precedence.
    fn add_to(&self, command: Command, now: Instant) -> Command {
        let fresh = self.asked.filter(|(_, at)| now.since(*at) <= DEADLINE);
        match (command.emergency_stop_number, fresh) {
            (0, Some((number, _))) => Command { emergency_stop_number: number, ..command },
            _ => command,
        }
    }
}

/// Deadline of units other than commands, and the shortest deadline of an emergency stop. The
/// deadline of other commands is the guard's limit on their age.
const DEADLINE: Duration = Duration::from_millis(250);
/// Silence of the driving console after which another's emergency stop is sent as a command of its
/// own; a running page sends more often.
const DRIVER_QUIET: Duration = Duration::from_millis(100);
/// Greatest plausible error of a page's clock comparison: at most half a round trip, and a page
/// with a round trip of 100 ms is too far away to drive.
const PAGE_ERROR: Duration = Duration::from_millis(50);
/// Age given to an emergency stop that is sent alone, so that the vehicle does not follow the rest
/// of its command.
const STALE: Duration = Duration::from_secs(60);
/// Bit of the first absence of a command: the console is gone (schemas/command.fbs).
const CONSOLE_GONE: u32 = 1;
/// Interval at which unchanged feedback is repeated.
const FEEDBACK_REPEAT: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;
    use std::sync::mpsc;

    use proptest::prelude::*;
    use tautline_guard::{Actions, Twist};
    use tautline_message::{Act, Deed};

    use super::*;
    use crate::standing::Standing;

    /// Returns an input with an established session, and the units it sends.
    fn input() -> (Input, mpsc::Receiver<(ChannelNumber, Vec<u8>)>) {
        let (requests, _) = tokio::sync::mpsc::channel(1);
        let (hub, shared) = (Hub::new("car-1", requests, || 0), Shared::new("car-1"));
        shared.set_standing(Standing::new(SessionState::Established, ""));
        let (sent, units) = mpsc::channel();
        let send = move |channel, unit, _| sent.send((channel, unit)).unwrap();
        (Input::new(Arc::new(hub), Arc::new(shared), send, Clock::start(), false), units)
    }

    #[test]
    fn for_a_silent_console_only_feedback_is_sent_and_no_stop() {
        let (mut input, units) = input();
        let console = ConsoleId(NonZeroU64::new(7).unwrap());
        let driving = Holding { console: Some(console), successor: None };
        input.handle_console(driving);
        let sent_at = Instant::from_nanos(input.clock.unix_nanos(input.clock.now()));
        let command = Command { throttle: 0.5, console: 7, sent_at, ..Command::default() };
        input.handle_command(command);
        let channels: Vec<_> = units.try_iter().map(|(channel, _)| channel).collect();
        assert_eq!(channels, [channels::VIDEO_FEEDBACK, channels::COMMAND]);
        // The console falls silent: its connection hangs, and then it is gone.
        for _ in 0..50 {
            // As if the repetition were due.
            input.fed_back = None;
            input.feed_back();
        }
        let silent: Vec<_> = units.try_iter().map(|(channel, _)| channel).collect();
        assert_eq!(silent, [channels::VIDEO_FEEDBACK; 50]);
        input.handle_console(Holding::default());
        let (channel, last) = units.try_recv().unwrap();
        assert_eq!(channel, channels::COMMAND);
        let last = Command::decode(&last).unwrap();
        assert!(!is_stop(&last) && last.act.is_none(), "{last:?}");
        assert_eq!((last.console, last.absences, last.throttle), (7, CONSOLE_GONE, 0.0));
        assert_eq!(units.try_recv().unwrap().0, channels::VIDEO_FEEDBACK);
        assert!(units.try_recv().is_err());
    }

    proptest! {
        /// For any date set by a page: its command never looks younger than it is. One
        /// from the future is forwarded only if it is a stop, and only as a stop.
        #[test]
        fn no_date_of_a_page_makes_its_command_fresh(
            date in any::<u64>(),
            off in -400_000_000..400_000_000_i64,
            is_near in any::<bool>(),
            emergency_stop_number in 0..2_u32,
        ) {
            let (mut input, units) = input();
            let console = ConsoleId(NonZeroU64::new(7).unwrap());
            input.handle_console(Holding { console: Some(console), successor: None });
            let zero = input.clock.unix_nanos(Instant::ZERO);
            let unix = input.clock.unix_nanos(input.clock.now());
            let date = if is_near { unix.saturating_add_signed(off) } else { date };
            let sent_at = Instant::from_nanos(date);
            let command = Command { throttle: 0.5, console: 7, sent_at, ..Command::default() };
            input.handle_command(Command { emergency_stop_number, ..command });
            let after = input.clock.unix_nanos(input.clock.now());
            let sent = units.try_iter().filter(|(channel, _)| *channel == channels::COMMAND).last();
            let sent = sent.map(|(_, unit)| Command::decode(&unit).unwrap());
            prop_assert!(emergency_stop_number == 0 || sent.is_some(), "a stop counts whatever its age");
            let is_ahead = date > after.saturating_add(PAGE_ERROR.as_nanos() as u64);
            let is_old = date < unix - 300_000_000;
            prop_assert!(sent.is_none_or(|sent| sent.throttle == 0.0) || !(is_ahead || is_old));
            if let Some(sent) = sent.filter(|sent| sent.throttle > 0.0) {
                prop_assert!(zero + sent.sent_at.as_nanos() <= date, "younger than it is");
            }
        }
    }

    proptest! {
        /// Of a console that does not drive, and of a command that is too old or dated ahead, only
        /// the emergency stop is forwarded.
        #[test]
        fn only_a_fresh_command_of_the_driver_has_a_set_point(
            (drives, is_driver) in any::<(bool, bool)>(),
            off in prop_oneof![Just(0), -600_000_000..200_000_000_i64],
            emergency_stop in any::<bool>(),
            emergency_stop_number in 0..2_u32,
            numbers in prop::array::uniform5(0.1_f32..1.0),
        ) {
            let (mut input, units) = input();
            let console = ConsoleId(NonZeroU64::new(7).unwrap());
            let holder = drives.then_some(console);
            input.handle_console(Holding { console: holder, successor: None });
            let now = input.clock.unix_nanos(input.clock.now());
            let [steering, throttle, forward, sideways, yaw_rate] = numbers;
            input.handle_command(Command {
                sent_at: Instant::from_nanos(now.saturating_add_signed(off)),
                steering,
                throttle,
                emergency_stop,
                console: if is_driver { 7 } else { 8 },
                cited: 9,
                act: Some(Act { number: 1, stop: 0, deed: Deed::Arm }),
                emergency_stop_number,
                actions: Actions::from_bits(1),
                twist: Twist { forward, sideways, yaw_rate },
                ..Command::default()
            });
            let sent = units.try_iter().filter(|(channel, _)| *channel == channels::COMMAND);
            let sent: Vec<_> = sent.map(|(_, unit)| Command::decode(&unit).unwrap()).collect();
            let has_set_points = |sent: &Command| {
                sent.twist != Twist::ZERO || sent.throttle > 0.0 || sent.act.is_some()
                    || sent.steering != 0.0 || !sent.actions.is_empty() || sent.cited != 0
            };
            // The guard's limit of the age is 200 ms; a page's clock may be 50 ms ahead.
            let is_late = !(-250_000_000..=50_000_000).contains(&off);
            if !(drives && is_driver) || is_late {
                prop_assert!(!sent.iter().any(has_set_points), "{sent:?}");
            }
            if drives && is_driver && off == 0 {
                prop_assert!(sent.iter().all(|sent| sent.twist.yaw_rate == yaw_rate));
                prop_assert_eq!(sent.len(), 1);
            }
            prop_assert!(emergency_stop_number == 0 || !drives || !is_driver || sent.len() == 1);
        }
    }

    #[test]
    fn a_bystanders_stop_is_added_to_the_drivers_commands() {
        let at = Instant::from_millis;
        let driving = Command { throttle: 0.5, console: 7, ..Command::default() };
        let mut bystander = Bystander::default();
        assert_eq!(bystander.add_to(driving, at(1_000)), driving);
        bystander.note(44, at(1_000));
        let stop = Command { emergency_stop_number: 44, ..driving };
        assert_eq!(bystander.add_to(driving, at(1_250)), stop);
        assert_eq!(bystander.add_to(driving, at(1_251)), driving);
        let own = Command { emergency_stop_number: 9, ..driving };
        assert_eq!(bystander.add_to(own, at(1_001)), own);
    }
}
