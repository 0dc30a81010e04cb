use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime, alg_id,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{Acceptor, NoServerSessionStorage, ParsedCertificate};
use rustls::sign::public_key_to_spki;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, OtherError,
    PeerIncompatible, ServerConfig, SignatureScheme,
};
use tautline_transport::crypto::{Identity, PublicKey};

use super::error::Mismatch;
use super::{Code, Error};

/// The server that a client accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {
    /// The holder of this key.
    Key(PublicKey),
    /// The server that issued this code.
    Code(Code),
}

impl From<PublicKey> for Expected {
    fn from(key: PublicKey) -> Self {
        Self::Key(key)
    }
}

/// Builds the client's configuration: shows `identity`, and speaks `protocol` with the `expected`
/// server only.
pub(crate) fn client(
    identity: &Identity,
    expected: impl Into<Expected>,
    protocol: &[u8],
) -> Result<ClientConfig, Error> {
    let provider = provider();
    let (certificate, key) = certificate(identity)?;
    let verifier = ServerKey { expected: expected.into(), provider: Arc::clone(&provider) };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(own)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(vec![certificate], key)
        .map_err(own)?;
    // Every connection proves both keys again, and no names are visible to the network.
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}

/// Builds the server's configuration: shows `identity`, and accepts clients that speak `protocol`
/// and prove a key, either any key or one that is `admitted`.
pub(crate) fn server(
    identity: &Identity,
    admitted: Option<Admitted>,
    protocol: &[u8],
) -> Result<ServerConfig, Error> {
    let provider = provider();
    let (certificate, key) = certificate(identity)?;
    let verifier = ClientKey { admitted, provider: Arc::clone(&provider) };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(own)?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_single_cert(vec![certificate], key)
        .map_err(own)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}

/// Keys that a server admits now; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Admitted(Arc<Mutex<Vec<PublicKey>>>);

impl Admitted {
    /// Admits exactly the holders of `keys` from now on.
    pub(crate) fn set(&self, keys: impl Iterator<Item = PublicKey>) {
        let mut admitted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        admitted.clear();
        admitted.extend(keys);
    }

    fn holds(&self, key: PublicKey) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }
}

/// Returns the Ed25519 key in a certificate; ignores everything else in it.
pub(crate) fn key_of(certificate: &CertificateDer<'_>) -> Result<PublicKey, rustls::Error> {
    let spki = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
    let no_key = rustls::Error::InvalidCertificate(CertificateError::BadEncoding);
    let Some(bytes) = spki.last_chunk::<32>() else { return Err(no_key) };
    // The encoding of an Ed25519 key is fixed ([RFC8410] 4). The key is valid exactly if
    // re-encoding its last 32 bytes yields the same.
    if public_key_to_spki(&alg_id::ED25519, bytes) != spki {
        return Err(PeerIncompatible::NoSignatureSchemesInCommon.into());
    }
    PublicKey::from_bytes(*bytes).map_err(|_| no_key)
}

/// ALPN of the control protocol: distinguishes versions.
pub(super) const CONTROL: &[u8] = b"tautline-control/1";
/// ALPN of a link's datagrams, which may share a port with the control protocol.
// protocol 9
pub(crate) const LINK: &[u8] = b"tautline-link/1";
/// ALPN of the datagrams of a relay's leg.
// protocol 11
pub(crate) const RELAY: &[u8] = b"tautline-relay/1";

/// Returns whether a client that begins with these bytes requests `protocol`; `None` while the
/// hello is incomplete, `false` if it is not one of TLS.
pub(crate) fn asks_for(protocol: &[u8], mut hello: &[u8]) -> Option<bool> {
    let mut acceptor = Acceptor::default();
    while !hello.is_empty() {
        acceptor.read_tls(&mut hello).ok()?;
        match acceptor.accept() {
            Ok(None) => {}
            Ok(Some(accepted)) => {
                let mut asked = accepted.client_hello().alpn().into_iter().flatten();
                return Some(asked.any(|name| name == protocol));
            }
            // No hello of TLS: the handshake reports that.
            Err(_) => return Some(false),
        }
    }
    None
}

/// Returns the server name that TLS requires; it is ignored.
pub(crate) fn server_name() -> ServerName<'static> {
    ServerName::try_from("switchboard.invalid").expect("this is a DNS name")
}

#[derive(Debug)]
struct ServerKey {
    expected: Expected,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ServerKey {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found = key_of(end_entity)?;
        let expected = match self.expected {
            Expected::Key(key) if key == found => return Ok(ServerCertVerified::assertion()),
            Expected::Code(code) if code.is_of(found) => return Ok(ServerCertVerified::assertion()),
            Expected::Key(key) => Some(key),
            Expected::Code(_) => None,
        };
        let mismatch = OtherError(Arc::new(Mismatch { expected, found }));
        Err(rustls::Error::InvalidCertificate(CertificateError::Other(mismatch)))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

#[derive(Debug)]
struct ClientKey {
    /// Keys that may connect; `None` admits every key.
    admitted: Option<Admitted>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for ClientKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let key = key_of(end_entity)?;
        if self.admitted.as_ref().is_some_and(|admitted| !admitted.holds(key)) {
            let refused = CertificateError::ApplicationVerificationFailure;
            return Err(rustls::Error::InvalidCertificate(refused));
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

/// Creates a certificate that only carries the key.
pub(super) fn certificate(
    identity: &Identity,
) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), Error> {
    let key = PrivatePkcs8KeyDer::from([PKCS8_PREFIX, &identity.signing_seed()[..]].concat());
    let pair = rcgen::KeyPair::try_from(&key).map_err(own)?;
    let certificate = rcgen::CertificateParams::default().self_signed(&pair).map_err(own)?;
    Ok((certificate.der().clone(), key.into()))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn own(error: impl std::fmt::Display) -> Error {
    Error::Certificate(error.to_string())
}

/// PKCS#8 bytes before the 32 bytes of the seed. Source: [RFC8410] 10.3.
const PKCS8_PREFIX: &[u8] = &[
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_certificate_carries_the_key_of_its_identity() {
        let identity = Identity::from_seed(&[7; 32]);
        let (certificate, _) = certificate(&identity).unwrap();
        assert_eq!(key_of(&certificate), Ok(identity.public()));
    }

    #[test]
    fn a_client_that_speaks_tls_1_2_alone_is_refused() {
        let server = server(&Identity::from_seed(&[7; 32]), None, CONTROL);
        let server = Arc::new(server.unwrap());
        let ask = |version| {
            let expected = Identity::from_seed(&[7; 32]).public();
            let verifier = ServerKey { expected: expected.into(), provider: provider() };
            let mut config = ClientConfig::builder_with_provider(provider())
                .with_protocol_versions(&[version])
                .unwrap()
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
                .with_no_client_auth();
            config.alpn_protocols = vec![CONTROL.to_vec()];
            let name = rustls::pki_types::ServerName::try_from("switchboard").unwrap();
            let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
            let mut hello = Vec::new();
            client.write_tls(&mut hello).unwrap();
            let mut asked = rustls::ServerConnection::new(Arc::clone(&server)).unwrap();
            asked.read_tls(&mut hello.as_slice()).unwrap();
            asked.process_new_packets().map(|_| ())
        };
        assert_eq!(ask(&TLS13), Ok(()));
        assert!(ask(&rustls::version::TLS12).is_err());
    }

    #[test]
    fn the_requested_protocol_is_read_from_the_client_hello() {
        let identity = Identity::from_seed(&[7; 32]);
        let hello = |protocol| {
            let config = client(&identity, identity.public(), protocol).unwrap();
            let mut client =
                rustls::ClientConnection::new(Arc::new(config), server_name()).unwrap();
            let mut hello = Vec::new();
            client.write_tls(&mut hello).unwrap();
            hello
        };
        let (relay, control) = (hello(RELAY), hello(CONTROL));
        assert_eq!(asks_for(RELAY, &relay), Some(true));
        assert_eq!(asks_for(RELAY, &control), Some(false));
        assert_eq!(asks_for(RELAY, b"GET / HTTP/1.1\r\n\r\n"), Some(false));
        for end in 0..relay.len() {
            assert_eq!(asks_for(RELAY, &relay[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_certificate_of_another_kind_of_key_is_refused() {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        let other = rcgen::CertificateParams::default().self_signed(&pair).unwrap();
        assert!(key_of(other.der()).is_err());
    }

    #[test]
    fn no_bytes_panic_the_certificate_reader() {
        let (good, _) = certificate(&Identity::from_seed(&[7; 32])).unwrap();
        for end in 0..good.len() {
            assert!(key_of(&CertificateDer::from(good[..end].to_vec())).is_err());
        }
        for place in 0..good.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = good.to_vec();
                bytes[place] ^= flip;
                let _ = key_of(&CertificateDer::from(bytes));
            }
        }
    }

    /// Returns the first bytes of a client that requests a protocol.
    fn hello(protocol: &[u8]) -> Vec<u8> {
        let identity = Identity::from_seed(&[7; 32]);
        let config = client(&identity, identity.public(), protocol).unwrap();
        let mut client = rustls::ClientConnection::new(Arc::new(config), server_name()).unwrap();
        let mut hello = Vec::new();
        client.write_tls(&mut hello).unwrap();
        hello
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_hello_cut_anywhere_is_no_answer_yet(cut in 0.0..1.0f64) {
            let hello = hello(RELAY);
            prop_assert_eq!(asks_for(RELAY, &hello), Some(true));
            prop_assert_eq!(asks_for(LINK, &hello), Some(false));
            let cut = (cut * hello.len() as f64) as usize;
            prop_assert_eq!(asks_for(RELAY, &hello[..cut]), None);
        }

        #[test]
        fn any_first_bytes_are_judged_without_panic(
            bytes: Vec<u8>,
            at in 0.0..1.0f64,
            bit in 0u8..8,
            length: u16,
        ) {
            let [high, low] = length.to_be_bytes();
            let record = [&[22, 3, 1, high, low][..], &bytes].concat();
            let message = [&[22, 3, 1, 0, 200, 1, 0, high, low][..], &bytes].concat();
            let mut flipped = hello(RELAY);
            let at = (at * flipped.len() as f64) as usize;
            flipped[at] ^= 1 << bit;
            for first in [bytes, record, message, flipped] {
                let _ = asks_for(RELAY, &first);
            }
        }
    }
}
