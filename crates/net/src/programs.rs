//! Programs of this machine that get the units of topics.

use std::collections::BTreeMap;

use crate::datagram::{Address, Client};

/// Local programs by the name of their topic; each gets the units of its topic as datagrams.
#[derive(Debug)]
pub struct Programs {
    clients: BTreeMap<String, Client>,
    undelivered: u64,
}

impl Programs {
    /// Creates the connections; a program need not be there yet.
    pub fn new(addresses: &BTreeMap<String, Address>) -> Self {
        let clients = addresses.iter().map(|(topic, at)| (topic.clone(), Client::new(at)));
        Self { clients: clients.collect(), undelivered: 0 }
    }

    /// Sends a unit of `topic` to its program, if one is configured; counts the unit if the program
    /// is absent or its queue is full.
    pub fn send(&mut self, topic: &str, unit: &[u8]) {
        if let Some(program) = self.clients.get_mut(topic) {
            self.undelivered += u64::from(!program.send(unit));
        }
    }

    /// Returns the number of units that were not taken by their program.
    pub fn undelivered(&self) -> u64 {
        self.undelivered
    }
}
