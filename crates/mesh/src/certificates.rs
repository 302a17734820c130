//! Certificates of one run: its own authority, a certificate with a SPIFFE identity per proxy, those of
//! gateways and their clients, and those of the lab's Kubernetes API.
//! As in a mesh, they use ECDSA P-256 with identities as URIs
//! (`spiffe://cluster.local/ns/default/sa/client`). The authority's key never leaves this process. Other keys
//! are written only to the directory that the caller names, which must be private to the lab, or to a Secret
//! of the run. Nothing here may be copied to a run's results.

use crate::Result;
pub use crate::envoy::credentials::CredentialFiles;
use crate::names::TRUST_DOMAIN;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use graviola::signing::rsa;
use jiff::Timestamp;
use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Longer than a lab stays open, which may be weeks: nothing renews these certificates.
const VALIDITY: Duration = Duration::from_secs(90 * 24 * 3600);

/// Allows for clock skew; Istio backdates its certificates by the same amount.
const BACKDATED: Duration = Duration::from_secs(120);

/// Size of a private 2048-bit RSA key in PKCS #8 at most.
const MAX_RSA_KEY_BYTES: usize = 2048;

/// Key algorithm of a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum KeyAlgorithm {
    /// The algorithm that proxies of a mesh use.
    #[default]
    EcdsaP256,
    Rsa2048,
}

/// Generates the key with graviola: ring, which signs here, cannot generate RSA keys.
fn rsa_key(operation: String) -> Result<KeyPair> {
    if !graviola::util::is_cpu_supported() {
        let reason = "RSA keys are generated with instructions that this CPU does not have (x86-64: AVX2, ADX, BMI2, AES)";
        return Err(EnvironmentError::new(operation, reason).with_hint("leave out the scenario `rsa`"));
    }
    let mut buffer = [0; MAX_RSA_KEY_BYTES];
    let generated = rsa::SigningKey::generate(rsa::KeySize::Rsa2048)
        .and_then(|key| key.to_pkcs8_der(&mut buffer).map(<[u8]>::to_vec));
    let der = generated
        .map_err(|error| EnvironmentError::new(operation.clone(), format!("an RSA key: {error:?}")))?;
    KeyPair::try_from(der).context(operation)
}

pub fn spiffe_identity(namespace: &str, service_account: &str) -> String {
    format!("spiffe://{TRUST_DOMAIN}/ns/{namespace}/sa/{service_account}")
}

pub struct RunAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate_pem: String,
}

impl RunAuthority {
    pub fn create() -> Result<Self> {
        let operation = "make a certificate for the run's authority";
        let mut parameters = dated_parameters();
        parameters.distinguished_name.push(DnType::OrganizationName, "Meshmeter");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().context(operation)?;
        let certificate_pem = parameters.self_signed(&key).context(operation)?.pem();
        Ok(Self { issuer: Issuer::new(parameters, key), certificate_pem })
    }

    pub fn issue(&self, identity: &str) -> Result<Credentials> {
        let mut parameters = leaf_parameters(ExtendedKeyUsagePurpose::ServerAuth);
        parameters.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        let name = Ia5String::try_from(identity).context(operation_for(identity))?;
        parameters.subject_alt_names = vec![SanType::URI(name)];
        self.sign(identity, &parameters, KeyAlgorithm::default())
    }

    pub fn issue_server(&self, names: &[&str], addresses: &[IpAddr]) -> Result<Credentials> {
        self.issue_server_with(names, addresses, KeyAlgorithm::default())
    }

    pub fn issue_server_with(
        &self,
        names: &[&str],
        addresses: &[IpAddr],
        algorithm: KeyAlgorithm,
    ) -> Result<Credentials> {
        let subject = names.first().copied().unwrap_or("a server");
        let names = names.iter().map(|name| Ia5String::try_from(*name).map(SanType::DnsName));
        let addresses = addresses.iter().map(|address| Ok(SanType::IpAddress(*address)));
        let alternatives =
            names.chain(addresses).collect::<Result<_, rcgen::Error>>().context(operation_for(subject))?;
        let mut parameters = leaf_parameters(ExtendedKeyUsagePurpose::ServerAuth);
        parameters.distinguished_name.push(DnType::CommonName, subject);
        parameters.subject_alt_names = alternatives;
        self.sign(subject, &parameters, algorithm)
    }

    pub fn issue_client(&self, name: &str, group: &str) -> Result<Credentials> {
        let mut parameters = leaf_parameters(ExtendedKeyUsagePurpose::ClientAuth);
        parameters.distinguished_name.push(DnType::OrganizationName, group);
        parameters.distinguished_name.push(DnType::CommonName, name);
        self.sign(name, &parameters, KeyAlgorithm::default())
    }

    fn sign(
        &self,
        identity: &str,
        parameters: &CertificateParams,
        algorithm: KeyAlgorithm,
    ) -> Result<Credentials> {
        let operation = || operation_for(identity);
        let key = match algorithm {
            KeyAlgorithm::EcdsaP256 => KeyPair::generate().context(operation())?,
            KeyAlgorithm::Rsa2048 => rsa_key(operation())?,
        };
        let certificate = parameters.signed_by(&key, &self.issuer).context(operation())?;
        Ok(Credentials {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            authority_pem: self.certificate_pem.clone(),
        })
    }
}

/// A key that signs tokens and its public half that verifies them, PEM.
pub struct SigningKey {
    pub private_pem: String,
    pub public_pem: String,
}

impl SigningKey {
    pub fn create() -> Result<Self> {
        let key = KeyPair::generate().context(operation_for("signing tokens"))?;
        Ok(Self { private_pem: key.serialize_pem(), public_pem: key.public_key_pem() })
    }
}

impl fmt::Debug for RunAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunAuthority").finish_non_exhaustive()
    }
}

fn operation_for(identity: &str) -> String {
    format!("make a certificate for {identity}")
}

/// `CertificateParams` valid from now, for an ECDSA P-256 key as from `KeyPair::generate`.
fn dated_parameters() -> CertificateParams {
    let now = SystemTime::from(Timestamp::now());
    let mut parameters = CertificateParams::default();
    parameters.not_before = (now - BACKDATED).into();
    parameters.not_after = (now + VALIDITY).into();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters
}

fn leaf_parameters(purpose: ExtendedKeyUsagePurpose) -> CertificateParams {
    let mut parameters = dated_parameters();
    parameters.is_ca = IsCa::ExplicitNoCa;
    parameters.use_authority_key_identifier_extension = true;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    parameters.extended_key_usages = vec![purpose];
    parameters
}

/// A certificate, its key and the trusted authority, PEM. Its `Debug` output omits the key.
pub struct Credentials {
    pub certificate_pem: String,
    /// Must stay in memory and private files.
    pub key_pem: String,
    pub authority_pem: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Writes the files into `folder`, created with mode 0700 if absent. `owner`: user and group of directory
    /// and files.
    pub fn write(&self, folder: &Path, owner: Option<u32>) -> Result<CredentialFiles> {
        private_folder(folder, owner).context(format!("write {}", folder.display()))?;
        let files = CredentialFiles::in_folder(folder);
        for (path, content) in [
            (&files.certificate, &self.certificate_pem),
            (&files.key, &self.key_pem),
            (&files.authority, &self.authority_pem),
        ] {
            write_private(path, content.as_bytes(), owner)?;
        }
        Ok(files)
    }
}

fn private_folder(folder: &Path, owner: Option<u32>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    owner.map_or(Ok(()), |owner| fchown(File::open(folder)?, Some(owner), Some(owner)))
}

/// Creates a file that only its owner can read, from the moment it exists.
pub fn write_private(path: &Path, content: &[u8], owner: Option<u32>) -> Result<()> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(content)?;
        owner.map_or(Ok(()), |owner| fchown(&file, Some(owner), Some(owner)))
    };
    write().context(format!("write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn openssl(arguments: &[&str]) -> String {
        let output =
            Command::new("openssl").args(arguments).output().expect("openssl is needed by this test");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn server_certificates_may_use_rsa_keys() {
        let folder = tempfile::tempdir().unwrap();
        let authority = RunAuthority::create().unwrap();
        let issued = authority.issue_server_with(&["*.shop.example"], &[], KeyAlgorithm::Rsa2048).unwrap();
        let files = issued.write(folder.path(), None).unwrap();
        let (certificate, trusted) = (files.certificate.to_str().unwrap(), files.authority.to_str().unwrap());
        let text = openssl(&["x509", "-in", certificate, "-noout", "-text"]);
        assert!(text.contains("rsaEncryption") && text.contains("(2048 bit)"), "{text}");
        assert!(openssl(&["verify", "-CAfile", trusted, certificate]).contains("OK"));
        let other = RunAuthority::create().unwrap();
        let other = other.issue_server_with(&["*.shop.example"], &[], KeyAlgorithm::Rsa2048).unwrap();
        assert!(issued.key_pem != other.key_pem, "two runs have one key");
    }

    #[test]
    fn certificate_has_spiffe_identity_and_verifies_against_own_authority_only() {
        let folder = tempfile::tempdir().unwrap();
        let authority = RunAuthority::create().unwrap();
        let files = authority
            .issue(&spiffe_identity("default", "client"))
            .unwrap()
            .write(&folder.path().join("client"), None)
            .unwrap();
        let (certificate, trusted) = (files.certificate.to_str().unwrap(), files.authority.to_str().unwrap());
        let verified = openssl(&["verify", "-x509_strict", "-CAfile", trusted, certificate]);
        assert!(verified.ends_with("OK\n"), "{verified}");
        let text = openssl(&["x509", "-in", certificate, "-noout", "-text"]);
        for part in ["URI:spiffe://cluster.local/ns/default/sa/client", "prime256v1", "CA:FALSE"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        openssl(&["x509", "-in", certificate, "-noout", "-checkend", "2592000"]);

        let other = RunAuthority::create().unwrap().issue(&spiffe_identity("default", "client")).unwrap();
        let other = other.write(&folder.path().join("other"), None).unwrap();
        let refused = Command::new("openssl")
            .args(["verify", "-CAfile", trusted, other.certificate.to_str().unwrap()])
            .output()
            .unwrap();
        assert!(!refused.status.success(), "another run's authority was trusted");
    }

    #[test]
    fn key_files_are_owner_only_and_never_overwritten_or_shown() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("client");
        let credentials =
            RunAuthority::create().unwrap().issue(&spiffe_identity("default", "client")).unwrap();
        let files = credentials.write(&place, None).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place), 0o700);
        assert_eq!(mode(&files.key), 0o600);
        assert!(credentials.write(&place, None).is_err());
        assert_eq!(format!("{credentials:?}"), "Credentials { .. }");
    }
}
