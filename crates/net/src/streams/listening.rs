use std::io::ErrorKind;
use std::net::SocketAddr;

use mio::net::TcpListener;
use mio::{Interest, Registry, Token};

use crate::refused::Refused;

/// Listens on `address`, for the events of `token`.
///
/// # Errors
/// If the system refuses it.
pub(super) fn listen(
    address: SocketAddr,
    registry: &Registry,
    token: Token,
) -> anyhow::Result<TcpListener> {
    let mut socket = TcpListener::bind(address).map_err(|cause| {
        let help = match cause.kind() {
            ErrorKind::AddrInUse => "another program uses the port",
            ErrorKind::AddrNotAvailable => "no interface of this machine has the address",
            ErrorKind::PermissionDenied => "a port below 1024 needs root or CAP_NET_BIND_SERVICE",
            _ => "",
        };
        Refused::new(format!("cannot listen for TLS on {address}"), cause, help)
    })?;
    registry.register(&mut socket, token, Interest::READABLE)?;
    Ok(socket)
}
