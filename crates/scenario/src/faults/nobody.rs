use std::net::SocketAddr;

use tautline_transport::Route;

/// Returns a route from an address that belongs to nobody.
pub(super) fn route(route: Route) -> Route {
    Route { remote: SocketAddr::from(([10, 0, 0, 78], 666)), ..route }
}
