//! Topics of the operator's programs as received: each unit goes to a program of this machine.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tautline_net::Programs;
use tautline_net::channels::APPLICATION_MIN;
use tautline_net::datagram::Address;
use tautline_transport::ChannelNumber;

/// Channels that the operator has announced, and the local programs that get their units.
#[derive(Debug)]
pub(crate) struct Delivery {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    topics: BTreeMap<ChannelNumber, String>,
    programs: Programs,
    undescribed: u64,
}

impl Delivery {
    /// Creates the state before a session's first announcement. Each unit of a topic in `programs`
    /// goes to the program there; those of any other topic are ignored.
    pub(crate) fn new(programs: &BTreeMap<String, Address>) -> Self {
        let programs = Programs::new(programs);
        Self { state: Mutex::new(State { topics: BTreeMap::new(), programs, undescribed: 0 }) }
    }

    /// Forgets the channels of an earlier session.
    pub(crate) fn handle_new_session(&self) {
        self.state().topics.clear();
    }

    /// Records the topic of an application's channel; ignores Tautline's own channels.
    pub(crate) fn handle_described(&self, channel: ChannelNumber, topic: String) {
        if channel.get() >= APPLICATION_MIN {
            self.state().topics.insert(channel, topic);
        }
    }

    /// Forwards a unit of an application's channel to its program, if there is one; counts it if
    /// the channel has not been announced. Ignores Tautline's own channels.
    pub(crate) fn handle_unit(&self, channel: ChannelNumber, unit: &[u8]) {
        if channel.get() < APPLICATION_MIN {
            return;
        }
        let State { topics, programs, undescribed } = &mut *self.state();
        match topics.get(&channel) {
            Some(topic) => programs.send(topic, unit),
            None => *undescribed += 1,
        }
    }

    /// Returns the drop counters with their names.
    pub(crate) fn drops(&self) -> [(&'static str, u64); 2] {
        let state = self.state();
        [
            ("topics: unit before its description", state.undescribed),
            ("topics: unit not taken by its program", state.programs.undelivered()),
        ]
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tautline_net::datagram::Server;

    use super::*;

    #[test]
    fn a_unit_goes_to_the_program_of_its_announced_topic() {
        let folder = tempfile::tempdir().unwrap();
        let address = Address::Path(folder.path().join("goal.sock"));
        let delivery = Delivery::new(&BTreeMap::from([("/goal".to_owned(), address.clone())]));
        let (goal, other) = (ChannelNumber::new(APPLICATION_MIN), ChannelNumber::new(17));
        delivery.handle_unit(goal, b"early");
        delivery.handle_described(goal, "/goal".into());
        delivery.handle_described(other, "/other".into());
        delivery.handle_unit(goal, b"lost");
        assert_eq!(delivery.drops().map(|(_, count)| count), [1, 1]);
        let server = Server::open(&address).unwrap();
        delivery.handle_unit(other, b"for nobody");
        delivery.handle_unit(ChannelNumber::new(3), b"telemetry");
        delivery.handle_unit(goal, b"taken");
        let mut buffer = [0; 16];
        let (length, _) = server.receive(&mut buffer).expect("it has been sent");
        assert_eq!(&buffer[..length], b"taken");
        assert!(server.receive(&mut buffer).is_none());
        delivery.handle_new_session();
        delivery.handle_unit(goal, b"of another session");
        assert_eq!(delivery.drops().map(|(_, count)| count), [2, 1]);
    }
}
