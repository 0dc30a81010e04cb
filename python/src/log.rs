//! Log lines of the frames' thread, which never waits for Python: a bounded queue, emptied by the
//! thread that calls Python.

use std::fmt::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Level of a line by Python's numbers, and its text.
pub(crate) type Line = (u8, String);

/// Queue of a thread's events; what does not fit is left out.
#[derive(Debug)]
pub(crate) struct Lines(SyncSender<Line>);

impl Lines {
    /// Creates the collector, and the end from which its lines are read.
    pub(crate) fn new() -> (Self, Receiver<Line>) {
        let (lines, read) = sync_channel(LINES_MAX);
        (Self(lines), read)
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let level = match *event.metadata().level() {
            Level::ERROR => 40,
            Level::WARN => 30,
            _ => 20,
        };
        let mut text = Text::default();
        event.record(&mut text);
        // Left out when the program takes no lines for long: nothing may wait for it.
        let _ = self.0.try_send((level, text.message + &text.fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A string takes all.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

const LINES_MAX: usize = 64;
