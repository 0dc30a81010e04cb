//! Faults injected between the network and the session.
//!
//! Loss, delay and outages of a link belong to the model ([`tautline_sim::link`]). Cuts, address
//! changes, clock steps and endpoint restarts are steps of a [`Script`](crate::script::Script).

mod attack;
mod nobody;
mod random;

use rand_chacha::ChaCha20Rng;
use tautline_transport::Route;

pub use attack::Attack;
pub use random::{Random, Rates};

/// Faults on the datagrams that arrive at one endpoint.
#[derive(Debug, Clone, Default)]
pub enum Faults {
    /// Datagrams arrive as the links deliver them.
    #[default]
    None,
    /// Datagrams are randomly lost, damaged, duplicated and reordered.
    Random(Random),
    /// Forged, replayed and damaged datagrams arrive in addition to the genuine ones, all of which
    /// arrive.
    Attack(Attack),
}

impl Faults {
    /// Returns the datagrams to pass to the session when the network delivers `datagram`, in order.
    pub(crate) fn befall(
        &mut self,
        route: Route,
        datagram: &[u8],
        rng: &mut ChaCha20Rng,
    ) -> Vec<(Route, Vec<u8>)> {
        match self {
            Self::None => vec![(route, datagram.to_vec())],
            Self::Random(random) => random.befall(route, datagram, rng),
            Self::Attack(attack) => attack.befall(route, datagram, rng),
        }
    }
}
