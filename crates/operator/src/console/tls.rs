//! The console's certificate: a configured one, or one made from the machine's key.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{DerSignature, SigningKey};
use p256::pkcs8::EncodePrivateKey;
use sha2::{Digest, Sha256};
use tautline_net::file::{self, Input, refuse_readable_by_others};
use tautline_transport::crypto::Identity;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use zeroize::Zeroizing;

use super::access::Names;

/// Certificate shown to browsers, as the TLS configuration that uses it.
pub(crate) struct Shown {
    pub(crate) config: Arc<ServerConfig>,
    /// SHA-256 of the certificate, in the notation of browsers.
    pub(crate) fingerprint: String,
}

/// A certificate chain and its key, in files in PEM form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// Reads the certificate chain and the key of `files`; refuses a key file to which others than its
/// owner have access.
///
/// # Errors
/// Returns one line that names the file and what is wrong with it.
pub(crate) fn read(files: &Files) -> anyhow::Result<Shown> {
    let cannot = |what: &str, file: &Path| format!("{what} = {}", file.display());
    let cannot_certificate = || cannot("console_certificate", &files.certificate);
    let text = file::read(&files.certificate, file::TEXT_BYTES_MAX);
    let text = text.with_context(cannot_certificate)?;
    let chain = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let chain = chain.with_context(cannot_certificate)?;
    ensure!(
        !chain.is_empty(),
        "{}: the file contains no certificate in PEM format",
        cannot("console_certificate", &files.certificate)
    );
    let cannot_key = || cannot("console_certificate_key", &files.key);
    let input = Input::open(&files.key).with_context(cannot_key)?;
    refuse_readable_by_others(input.file(), &files.key).with_context(cannot_key)?;
    let key = PrivateKeyDer::from_pem_reader(input).with_context(cannot_key)?;
    show(chain, key).with_context(|| cannot("console_certificate", &files.certificate))
}

/// Creates a self-signed certificate for `names` with a key derived from that of `identity`; the
/// result is the same each time.
///
/// # Errors
/// Fails if a name cannot be in a certificate.
pub(crate) fn make(identity: &Identity, names: &Names) -> anyhow::Result<Shown> {
    let key = MachineKey::of(identity);
    let names: Vec<String> = names.bare().map(str::to_owned).collect();
    let mut params = rcgen::CertificateParams::new(names)
        .context("console_name: no name is valid in a certificate")?;
    params.distinguished_name.push(rcgen::DnType::CommonName, "Tautline console");
    params.serial_number = Some(SERIAL.to_vec().into());
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = params.self_signed(&key).context("cannot make the console's certificate")?;
    let secret = key.signing.to_pkcs8_der().context("cannot make the console's key")?;
    let secret = PrivatePkcs8KeyDer::from(secret.as_bytes().to_vec());
    show(vec![certificate.der().clone()], secret.into())
}

fn show(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> anyhow::Result<Shown> {
    let fingerprint = fingerprint(chain.first().context("no certificate")?);
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&tokio_rustls::rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Shown { config: Arc::new(config), fingerprint })
}

/// Returns the SHA-256 of a certificate as pairs of hexadecimal digits with colons, as browsers
/// show it.
fn fingerprint(certificate: &[u8]) -> String {
    let digest = Sha256::digest(certificate);
    digest.iter().enumerate().fold(String::new(), |mut text, (at, byte)| {
        let colon = if at == 0 { "" } else { ":" };
        write!(text, "{colon}{byte:02X}").expect("writing to a String does not fail");
        text
    })
}

/// P-256 key derived from the machine's own key, because browsers do not support Ed25519.
struct MachineKey {
    signing: SigningKey,
    public: Vec<u8>,
}

impl MachineKey {
    fn of(identity: &Identity) -> Self {
        let seed = identity.signing_seed();
        // All but one in 2^32 digests are a valid scalar of the curve.
        let signing = (0..=u8::MAX)
            .find_map(|attempt| {
                let digest = Sha256::new().chain_update(LABEL).chain_update([attempt]);
                let digest: [u8; 32] = digest.chain_update(seed.as_slice()).finalize().into();
                SigningKey::from_slice(Zeroizing::new(digest).as_slice()).ok()
            })
            .expect("256 digests of which none is a scalar do not come by");
        let public = signing.verifying_key().to_sec1_point(false).as_bytes().to_vec();
        Self { signing, public }
    }
}

impl rcgen::PublicKeyData for MachineKey {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

/// Deterministic signatures ([RFC6979]): the certificate, and so its fingerprint, stays the same.
impl rcgen::SigningKey for MachineKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let signature: DerSignature = self.signing.sign(message);
        Ok(signature.as_bytes().to_vec())
    }
}

/// Label that separates this use of the machine's key from all others.
const LABEL: &[u8] = b"tautline console, P-256, 1\0";
/// Serial number of the certificate; there is only one certificate of this key.
const SERIAL: [u8; 8] = *b"tautline";

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(given: &str) -> Names {
        Names::of("0.0.0.0:8443".parse().unwrap(), &[given.to_owned()], true).unwrap()
    }

    #[test]
    fn a_machines_certificate_is_stable_and_unique() {
        let shown =
            |seed, name| make(&Identity::from_seed(&[seed; 32]), &names(name)).unwrap().fingerprint;
        let first = shown(7, "10.0.0.7");
        assert_eq!(first.len(), 32 * 3 - 1);
        assert_eq!(shown(7, "10.0.0.7"), first);
        assert_ne!(shown(8, "10.0.0.7"), first);
        assert_ne!(shown(7, "drive.example"), first);
    }

    #[test]
    fn a_browser_that_speaks_tls_1_2_alone_is_refused() {
        use tokio_rustls::rustls::pki_types::ServerName;
        use tokio_rustls::rustls::version::{TLS12, TLS13};
        use tokio_rustls::rustls::{
            ClientConfig, ClientConnection, RootCertStore, ServerConnection, crypto,
        };

        let shown = make(&Identity::from_seed(&[7; 32]), &names("drive.example")).unwrap();
        let ask = |version| {
            let provider = Arc::new(crypto::ring::default_provider());
            let config = ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&[version])
                .unwrap()
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth();
            let name = ServerName::try_from("drive.example").unwrap();
            let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
            let mut hello = Vec::new();
            client.write_tls(&mut hello).unwrap();
            let mut asked = ServerConnection::new(shown.config.clone()).unwrap();
            asked.read_tls(&mut hello.as_slice()).unwrap();
            asked.process_new_packets().map(|_| ())
        };
        assert_eq!(ask(&TLS13), Ok(()));
        assert!(ask(&TLS12).is_err());
    }

    #[test]
    fn files_that_are_no_certificate_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let allow = |file: &PathBuf, mode| {
            std::fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
        };
        let file = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            allow(&file, 0o600);
            file
        };
        let pair = rcgen::generate_simple_self_signed(["drive.example".to_owned()]).unwrap();
        let (good, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
        let (good, key) = (file("good.pem", &good), file("key.pem", &key));
        let empty = file("empty.pem", "nothing\n");
        let read = |certificate: &PathBuf, key: &PathBuf| {
            read(&Files { certificate: certificate.clone(), key: key.clone() })
        };
        assert!(read(&good, &key).is_ok());
        let nowhere = PathBuf::from("/nowhere");
        let wrong = |certificate: &PathBuf, key: &PathBuf, name: &str| {
            let error = format!("{:#}", read(certificate, key).err().expect("refused"));
            assert!(error.contains(name) && !error.contains('\n'), "{error}");
        };
        wrong(&empty, &key, "console_certificate = ");
        wrong(&good, &empty, "console_certificate_key = ");
        wrong(&nowhere, &key, "/nowhere");
        wrong(&good, &nowhere, "console_certificate_key = /nowhere");
        allow(&key, 0o640);
        wrong(&good, &key, "other users can read or change key file");
        // A key that is not the certificate's.
        let other = rcgen::generate_simple_self_signed(["b.example".to_owned()]).unwrap();
        wrong(&good, &file("other.pem", &other.signing_key.serialize_pem()), "good.pem");
    }
}
