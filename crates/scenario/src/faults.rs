//! What befalls datagrams on their last metre, between the network and the session.
//!
//! Loss, delay and outages of a link are the model's ([`tautline_sim::link`]); cuts, changes of
//! address, clocks that are set and endpoints that restart are steps of a
//! [`Script`](crate::script::Script).

mod attack;
mod random;

use std::net::SocketAddr;

use rand_chacha::ChaCha20Rng;
use tautline_transport::Route;

pub use attack::Attack;
pub use random::{Random, Rates};

/// What befalls the datagrams that come to one endpoint.
#[derive(Debug, Clone, Default)]
pub enum Faults {
    /// Datagrams come as the links bring them.
    #[default]
    None,
    /// Datagrams are lost, damaged, repeated and reordered by chance.
    Random(Random),
    /// Forged, replayed and damaged datagrams come beside the true ones, which all come.
    Attack(Attack),
}

impl Faults {
    /// Returns what the session is handed when the network brings `datagram`, in order.
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

/// Returns the route of a datagram that claims to come from an address that is nobody's.
fn from_nobody(route: Route) -> Route {
    Route { remote: SocketAddr::from(([10, 0, 0, 78], 666)), ..route }
}
