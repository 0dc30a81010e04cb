use std::collections::VecDeque;

use crate::channel::Channels;
use crate::config::Config;
use crate::counters::{Counters, Discard};
use crate::event::Event;

/// The configuration, counters and events that every part of a session shares.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) counters: Counters,
    /// Channels opened here.
    pub(crate) channels: Channels,
    events: VecDeque<Event>,
}

impl Shared {
    pub(crate) fn new(mut config: Config) -> Self {
        if let Some(controllers) = config.controllers.for_session() {
            config.controllers = controllers;
        }
        Self {
            config,
            counters: Counters::new(),
            channels: Channels::new(),
            events: VecDeque::new(),
        }
    }

    /// Queues an event for the application; drops and counts it if [`EVENTS_MAX`] are queued.
    pub(crate) fn event(&mut self, event: Event) {
        if self.events.len() >= EVENTS_MAX {
            self.counters.discard(Discard::EventOverflow);
            return;
        }
        self.events.push_back(event);
    }

    /// Removes and returns the oldest event; `None` if there is none.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

/// Maximum number of queued events, beyond which new ones are dropped: seconds of slices.
const EVENTS_MAX: usize = 4_096;
