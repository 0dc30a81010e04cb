use tautline_guard::description::Entry;
use tautline_guard::frame::{
    BYTES_MAX, Description, Fact, Proposal, Receiver, Sender, Status, Value, is_called,
};
use tautline_net::datagram::{Address, Client};

/// A vehicle's end towards its guard: sends proposals and facts, and receives the guard's status.
#[derive(Debug)]
pub struct Proposer {
    client: Client,
    sender: Sender,
    facts: Sender,
    receiver: Receiver<Status>,
    entries: Receiver<Description>,
    values: Receiver<Value>,
    unsent_count: u64,
}

impl Proposer {
    /// Creates an end towards the guard at `address`, which need not run yet.
    pub fn new(address: &Address) -> Self {
        Self {
            client: Client::new(address),
            sender: Sender::default(),
            facts: Sender::default(),
            receiver: Receiver::default(),
            entries: Receiver::default(),
            values: Receiver::default(),
            unsent_count: 0,
        }
    }

    /// Sends a proposal; a failure is counted, and the next proposal replaces it.
    pub fn propose(&mut self, proposal: &Proposal) {
        if !self.client.send(&self.sender.encode(proposal)) {
            self.unsent_count += 1;
        }
    }

    /// Sends a fact to the guard's black box; a failure is counted, and the caller repeats the fact
    /// later.
    pub fn tell(&mut self, fact: &Fact) {
        if !self.client.send(&self.facts.encode(fact)) {
            self.unsent_count += 1;
        }
    }

    /// Receives all waiting frames of the guard.
    pub fn receive(&mut self) -> Received {
        let mut buffer = [0; BYTES_MAX + 1];
        let mut received = Received::default();
        for _ in 0..DATAGRAMS_MAX {
            let Some(length) = self.client.receive(&mut buffer) else { break };
            let bytes = &buffer[..length];
            if is_called::<Description>(bytes) {
                let entry = self.entries.receive(bytes).map(|description| description.entry);
                received.entries.extend(entry);
            } else if is_called::<Value>(bytes) {
                received.values.extend(self.values.receive(bytes));
            } else if self.receiver.receive(bytes).is_ok() {
                received.status = Some(bytes.to_vec());
            }
        }
        received
    }

    /// Returns the number of proposals and facts that the system did not send.
    pub fn unsent_count(&self) -> u64 {
        self.unsent_count
    }

    /// Returns the number of invalid frames from the guard.
    pub fn refused_count(&self) -> u64 {
        self.receiver.refused_count() + self.entries.refused_count() + self.values.refused_count()
    }

    /// Returns the number of status frames with trailing numbers unknown to this build.
    pub fn skipped_count(&self) -> u64 {
        self.receiver.skipped_count()
    }
}

/// Valid frames of a guard that were received at once, at most [`DATAGRAMS_MAX`].
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Received {
    /// Bytes of the newest status; `None` if none arrived.
    pub status: Option<Vec<u8>>,
    /// Entries of the machine's description, in the order of their arrival.
    pub entries: Vec<Entry>,
    /// Readings of the machine's values, in the order of their arrival.
    pub values: Vec<Value>,
}

/// Maximum number of datagrams received at once; the rest waits for the next call.
const DATAGRAMS_MAX: usize = 32;
