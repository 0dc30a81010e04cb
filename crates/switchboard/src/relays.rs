//! Relays that both ends of a lease may use, and tokens for them.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Deserializer, Serialize};
use tautline_message::RelayTicket;
use tautline_net::Destination;
use tautline_net::settings::Faults;
use tautline_transport::crypto::{Identity, PublicKey};
use tautline_transport::relay::{Grant, Side, Token};
use tautline_units::{Bounded, Instant};

/// A relay in the switchboard's settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relay {
    /// Public key of the relay.
    #[serde(deserialize_with = "key")]
    pub key: PublicKey,
    /// UDP addresses of the relay.
    pub addresses: Vec<SocketAddr>,
    /// TCP addresses of the relay, for ends whose network blocks UDP.
    #[serde(default)]
    pub tls: Vec<SocketAddr>,
}

/// Signer of the tokens that permit both ends of a lease to use the relays.
#[derive(Debug)]
pub(crate) struct Issuer {
    identity: Identity,
    relays: Vec<Relay>,
    token_life: Duration,
}

impl Relay {
    /// Checks the relays of the settings.
    ///
    /// # Errors
    /// A line for each fault, with the name of its field.
    pub(crate) fn validate(relays: &[Self]) -> anyhow::Result<()> {
        let mut faults = Faults::default();
        faults.of(Bounded::size("relays", relays.len(), 0..=RELAYS_MAX, "entries").check());
        for (index, relay) in relays.iter().enumerate() {
            let Self { key, addresses, tls } = relay;
            let count = addresses.len();
            let count = Bounded::size("relays.addresses", count, 1..=ADDRESSES_MAX, "addresses");
            faults.of(count.check().with_context(|| format!("[[relays]] {key}")));
            let all = addresses.len() + tls.len();
            faults.unless(addresses.len() > ADDRESSES_MAX || all <= ADDRESSES_MAX, || {
                format!(
                    "[[relays]] {key}: {all} addresses including those for TLS, must be at most \
                     {ADDRESSES_MAX}"
                )
            });
            let is_known = relays[..index].iter().any(|other| other.key == *key);
            faults.unless(!is_known, || {
                format!("[[relays]] {key} is listed twice: give all its addresses in one entry")
            });
            let unreachable =
                |address: &&SocketAddr| address.ip().is_unspecified() || address.port() == 0;
            for address in addresses.iter().chain(tls).filter(unreachable) {
                faults.add(format!("[[relays]] {address} is not a reachable address"));
            }
        }
        faults.finish()
    }
}

impl Issuer {
    pub(crate) fn new(identity: &Identity, relays: &[Relay], token_life: Duration) -> Self {
        Self { identity: identity.clone(), relays: relays.to_vec(), token_life }
    }

    /// Returns the tickets for `holder`, on `side` of a lease, to reach `peer`: one for each relay,
    /// valid for the tokens' life from the Unix time `unix` on.
    pub(crate) fn tickets(
        &self,
        side: Side,
        holder: PublicKey,
        peer: PublicKey,
        unix: Duration,
    ) -> Vec<RelayTicket> {
        let until = unix + self.token_life;
        let ticket = |relay: &Relay| {
            let grant = Grant { side, holder, peer, relay: relay.key, until };
            let datagrams = relay.addresses.iter().copied().map(Destination::Datagrams);
            let streams = relay.tls.iter().copied().map(Destination::Tls);
            RelayTicket {
                addresses: datagrams.chain(streams).map(|at| at.to_string()).collect(),
                key: *relay.key.as_bytes(),
                token: Token::issue(&grant, &self.identity).as_bytes().to_vec(),
            }
        };
        self.relays.iter().map(ticket).collect()
    }

    /// Returns when tickets issued now must be renewed: at half their life; `None` without relays.
    pub(crate) fn renew_at(&self, now: Instant) -> Option<Instant> {
        (!self.relays.is_empty()).then(|| now + self.token_life / 2)
    }
}

fn key<'de, D: Deserializer<'de>>(from: D) -> Result<PublicKey, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(|error| serde::de::Error::custom(format!("[[relays]] key: {error}")))
}

/// Maximum number of relays in the settings: as many as an end accepts.
const RELAYS_MAX: usize = 4;
const ADDRESSES_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn relay(seed: u8, address: &str) -> Relay {
        let key = Identity::from_seed(&[seed; 32]).public();
        Relay { key, addresses: vec![address.parse().unwrap()], tls: Vec::new() }
    }

    #[test]
    fn a_ticket_grants_its_holder_one_relay_for_the_life_of_a_token() {
        let own = Identity::from_seed(&[9; 32]);
        let mut relays = [relay(3, "192.0.2.1:7444"), relay(4, "192.0.2.2:7444")];
        relays[1].tls = vec!["192.0.2.2:443".parse().unwrap()];
        let (life, unix) = (Duration::from_secs(100), Duration::from_secs(1_007));
        let issuer = Issuer::new(&own, &relays, life);
        let key = |seed| Identity::from_seed(&[seed; 32]).public();
        let tickets = issuer.tickets(Side::Responder, key(1), key(2), unix);
        assert_eq!(tickets.len(), 2);
        assert_eq!(tickets[1].addresses, ["192.0.2.2:7444", "tls:192.0.2.2:443"]);
        let token = Token::from_bytes(&tickets[1].token).unwrap();
        let grant = token.read(&own.public(), Duration::from_secs(1_106)).unwrap();
        assert_eq!((grant.side, grant.holder, grant.peer), (Side::Responder, key(1), key(2)));
        assert_eq!((grant.relay, grant.until), (key(4), Duration::from_secs(1_107)));
        let now = Instant::from_millis(7_000);
        assert_eq!(issuer.renew_at(now), Some(Instant::from_millis(57_000)));
    }

    #[test]
    fn relays_that_cannot_work_are_refused_by_name() {
        let wrong = |relays: &[Relay]| Relay::validate(relays).unwrap_err().to_string();
        let good = relay(1, "192.0.2.1:7444");
        Relay::validate(std::slice::from_ref(&good)).unwrap();
        assert!(
            wrong(&[good.clone(), good.clone()]).ends_with("give all its addresses in one entry")
        );
        assert!(wrong(&[relay(1, "0.0.0.0:7444")]).contains("0.0.0.0:7444 is not a reachable"));
        assert!(wrong(&[relay(1, "192.0.2.1:0")]).contains("is not a reachable address"));
        let tls = vec!["0.0.0.0:443".parse().unwrap()];
        assert!(wrong(&[Relay { tls, ..good.clone() }]).contains("is not a reachable address"));
        let tls = vec!["192.0.2.1:443".parse().unwrap(); 8];
        assert!(
            wrong(&[Relay { tls, ..good.clone() }]).contains("9 addresses including those for TLS")
        );
        let five = [(); 5].map(|()| good.clone());
        assert!(wrong(&five).contains("has 5 entries"));
        assert!(wrong(&[Relay { addresses: vec![], ..good }]).contains("0 addresses"));
        let error = toml::from_str::<Relay>("key = \"ab\"\naddresses = []\n").unwrap_err();
        assert!(error.message().starts_with("[[relays]] key: not a key"), "{error}");
    }
}
