//! The operator's input on its way to the vehicle.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tautline_message::{Command, Gear, StripReport};
use tautline_net::clock::Clock;
use tautline_net::driver::Handle;
use tautline_transport::Class;
use tautline_units::{ByteCount, Instant};

use crate::console::Hub;
use crate::reception::{Shared, Strips};

/// Numbers and dates the console's commands, adds what has come of the strips, and sends them.
///
/// A console that has nothing to say sends nothing, and then the vehicle stops by itself. So that
/// a picture also heals while nobody sits at the console, losses and wishes for IDRs then go with a
/// command to stop.
#[derive(Debug)]
pub(crate) struct Input {
    hub: Arc<Hub>,
    shared: Arc<Shared>,
    handle: Handle,
    clock: Clock,
    sequence: u64,
    commanded_at: Option<Instant>,
}

impl Input {
    pub(crate) fn new(hub: Arc<Hub>, shared: Arc<Shared>, handle: Handle, clock: Clock) -> Self {
        Self { hub, shared, handle, clock, sequence: 0, commanded_at: None }
    }

    /// Sends on what the console commands, unless it was held up on its way here: what came late
    /// from the browser must not look fresh to the vehicle.
    ///
    /// The console dates its commands in Unix time by this machine's clock, 0 for unknown.
    pub(crate) fn handle_command(&mut self, command: Command) {
        let now = self.clock.now();
        let unix = self.clock.unix_nanos(now);
        let age = Duration::from_nanos(unix.saturating_sub(command.sent_at.as_nanos()));
        if age > AGE_MAX {
            self.hub.commands_stale.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.commanded_at = Some(now);
        let strips = self.strips();
        self.send(command, strips, now - age);
    }

    /// Looks whether the console is silent while strips have to heal.
    pub(crate) fn watch(&mut self) {
        let now = self.clock.now();
        if self.commanded_at.is_some_and(|at| now.since(at) < CONSOLE_SILENCE) {
            return;
        }
        let strips = self.strips();
        if strips.refresh == 0 && !strips.reports.iter().flatten().any(StripReport::is_damaged) {
            return;
        }
        let stop =
            Command { brake: 1.0, gear: Gear::Drive, emergency_stop: true, ..Command::default() };
        self.send(stop, strips, now);
    }

    fn send(&mut self, command: Command, strips: Strips, sent_at: Instant) {
        self.sequence += 1;
        let command = Command {
            sequence: self.sequence,
            sent_at,
            refresh_strips: strips.refresh,
            strips: strips.reports,
            ..command
        };
        // Without a session there is nobody to command; the loop counts what it cannot take.
        let unit = command.encode();
        self.shared.note_control(ByteCount::of(&unit));
        self.handle.send(Class::Control, unit, DEADLINE);
    }

    fn strips(&self) -> Strips {
        let strips = self.shared.strips();
        Strips { refresh: strips.refresh | self.hub.take_refresh(), ..strips }
    }
}

/// The console sends fifty commands a second; so long without one means that nobody is there.
const CONSOLE_SILENCE: Duration = Duration::from_millis(300);
/// A command that took longer than this from the browser is not sent on.
const AGE_MAX: Duration = Duration::from_millis(250);
const DEADLINE: Duration = Duration::from_millis(250);
