use std::net::SocketAddr;

use tautline_transport::Route;
use tautline_transport::reach::reaches;

use crate::destination::Destination;

/// Returns every pair of a local socket and an address of the peer that it can [reach](reaches), at
/// most sixteen. Invalid addresses are skipped.
pub fn routes(locals: &[SocketAddr], peer_addresses: &[String]) -> Vec<Route> {
    let remotes: Vec<SocketAddr> = peer_addresses.iter().filter_map(|a| a.parse().ok()).collect();
    let pairs = locals.iter().enumerate().flat_map(|(socket, local)| {
        let reachable = remotes.iter().filter(move |remote| reaches(local, remote));
        reachable.map(move |remote| Route { socket: socket as u8, remote: *remote })
    });
    pairs.take(ROUTES_MAX).collect()
}

/// Returns the routes over TLS: every pair of a TLS address of the peer and a local end that can
/// reach it, at most four. Invalid addresses are skipped.
pub fn streams(locals: &[SocketAddr], peer_addresses: &[String]) -> Vec<Route> {
    let destinations = peer_addresses.iter().filter_map(|text| text.parse().ok());
    let remotes = destinations.filter_map(|destination| match destination {
        Destination::Tls(address) => Some(address),
        Destination::Datagrams(_) => None,
    });
    let pairs = remotes.flat_map(|remote| {
        let ends = locals.iter().enumerate().filter(move |(_, local)| reaches(local, &remote));
        ends.map(move |(index, _)| Route::stream(index as u8, remote))
    });
    pairs.take(STREAMS_MAX).collect()
}

/// Maximum routes for datagrams: link numbers have four bits.
const ROUTES_MAX: usize = 16;
/// Maximum routes over TLS: the number of modems in a vehicle. The remaining link numbers are for
/// routes of datagrams, which always carry media.
const STREAMS_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn remotes(routes: &[Route]) -> Vec<(u8, String)> {
        routes.iter().map(|route| (route.socket, route.remote.to_string())).collect()
    }

    #[test]
    fn links_are_every_socket_with_every_address_it_reaches() {
        let locals = ["192.0.2.1:5".parse().unwrap(), "0.0.0.0:6".parse().unwrap()];
        let peers = ["198.51.100.7:7000", "malformed", "[2001:db8::1]:7000", "127.0.0.1:9"];
        let found = routes(&locals, &peers.map(String::from));
        let expected = [(0, "198.51.100.7:7000"), (1, "198.51.100.7:7000"), (1, "127.0.0.1:9")];
        assert_eq!(remotes(&found), expected.map(|(socket, to)| (socket, to.to_owned())));
    }

    #[test]
    fn addresses_over_tls_are_streams_and_no_links_by_datagrams() {
        let locals = ["192.0.2.1:5".parse().unwrap(), "0.0.0.0:6".parse().unwrap()];
        let peers = ["198.51.100.7:7000", "tls:198.51.100.7:443", "tls:[2001:db8::1]:443", "tls:"];
        let peers = peers.map(String::from);
        assert_eq!(routes(&locals, &peers).len(), 2);
        let found = streams(&locals, &peers);
        let remote = "198.51.100.7:443".parse().unwrap();
        assert_eq!(found, [Route::stream(0, remote), Route::stream(1, remote)]);
        let many = vec![peers[1].clone(); 9];
        assert_eq!(streams(&locals, &many).len(), 4);
    }

    #[test]
    fn there_are_never_more_links_than_numbers() {
        let locals = vec!["127.0.0.1:5".parse().unwrap(); 5];
        let peers: Vec<String> = (1..9).map(|port| format!("127.0.0.1:{port}")).collect();
        assert_eq!(routes(&locals, &peers).len(), 16);
    }
}
