use std::net::{IpAddr, SocketAddr};

use tautline_net::Destination;

/// Parses the addresses at which an end is reachable, by datagrams or over TLS.
///
/// A wildcard address (`0.0.0.0:7000`, `[::]:7000`) stands for the source address of the
/// connection, `remote`, with that port. An IPv4 wildcard of an end that connects over IPv6 is
/// skipped, as are repetitions. An end on the switchboard's own machine has a loopback source
/// address, which is unreachable for others: there the addresses must be explicit.
///
/// # Errors
/// One line with the address and its fault, or that there are more than [`ADDRESSES_MAX`].
pub(super) fn reachable(texts: &[String], remote: IpAddr) -> Result<Vec<Destination>, String> {
    if texts.len() > ADDRESSES_MAX {
        return Err(format!(
            "{} addresses are too many: at most {ADDRESSES_MAX} are allowed",
            texts.len()
        ));
    }
    let remote = remote.to_canonical();
    let mut addresses = Vec::with_capacity(texts.len());
    for text in texts {
        let destination: Destination =
            text.parse().map_err(|_| format!("{text:?} is not an address with a port"))?;
        let mut address: SocketAddr = destination.address();
        if address.port() == 0 {
            return Err(format!("{text:?} has no port: give the port of the socket"));
        }
        if address.ip().is_unspecified() {
            if address.is_ipv4() && remote.is_ipv6() {
                continue;
            }
            address.set_ip(remote);
        }
        let destination = destination.at(address);
        if !addresses.contains(&destination) {
            addresses.push(destination);
        }
    }
    Ok(addresses)
}

/// Maximum number of addresses in a registration; one with more is refused.
const ADDRESSES_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str], remote: &str) -> Result<Vec<String>, String> {
        let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
        let found = reachable(&texts, remote.parse().unwrap())?;
        Ok(found.iter().map(Destination::to_string).collect())
    }

    #[test]
    fn a_wildcard_becomes_the_address_that_was_seen() {
        let found = read(&["0.0.0.0:7", "[::]:8", "10.0.0.1:9", "10.0.0.1:9"], "192.0.2.1");
        assert_eq!(found.unwrap(), ["192.0.2.1:7", "192.0.2.1:8", "10.0.0.1:9"]);
        assert_eq!(read(&["0.0.0.0:7"], "::ffff:192.0.2.1").unwrap(), ["192.0.2.1:7"]);
        assert_eq!(read(&["0.0.0.0:7", "[::]:8"], "2001:db8::1").unwrap(), ["[2001:db8::1]:8"]);
    }

    #[test]
    fn tls_addresses_are_passed_on_as_tls() {
        let found = read(&["10.0.0.1:443", "tls:10.0.0.1:443", "tls:0.0.0.0:443"], "10.0.0.1");
        assert_eq!(found.unwrap(), ["10.0.0.1:443", "tls:10.0.0.1:443"]);
    }

    #[test]
    fn invalid_addresses_are_refused_with_a_reason() {
        assert_eq!(read(&["car:7"], "::1").unwrap_err(), "\"car:7\" is not an address with a port");
        assert!(read(&["10.0.0.1:0"], "::1").unwrap_err().contains("has no port"));
        assert!(read(&["10.0.0.1:1"; 33], "::1").unwrap_err().contains("too many"));
    }
}
