//! Certificates that several servers share: an authority of their own signs them.

use std::io;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// The clocks of other machines may be this late.
const SKEW: Duration = Duration::from_hours(1);

/// A certificate or an authority, and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct PemPair {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

/// Makes an authority of this name, which is valid until then.
///
/// # Errors
///
/// If none can be made; a retry does not help.
pub fn authority(name: &str, until: SystemTime) -> io::Result<PemPair> {
    let key = new_key()?;
    let mut params = params_of(name)?;
    params.not_before = earlier().into();
    params.not_after = until.into();
    let certificate = params.self_signed(&key).map_err(io::Error::other)?;
    Ok(PemPair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Makes a certificate of a server with these names, which the authority of this name and key signs.
///
/// # Errors
///
/// If the key cannot be read, or a name is none; a retry does not help.
pub fn signed(authority: (&str, &str), names: &[String], until: SystemTime) -> io::Result<PemPair> {
    let (name, key) = authority;
    let signer = read_key(key)?;
    let issuer = Issuer::new(params_of(name)?, signer);
    let key = new_key()?;
    let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
    params.not_before = earlier().into();
    params.not_after = until.into();
    params.use_authority_key_identifier_extension = true;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let common = names.first().cloned().unwrap_or_default();
    params.distinguished_name.push(DnType::CommonName, common);
    let certificate = params.signed_by(&key, &issuer).map_err(io::Error::other)?;
    Ok(PemPair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Returns a time that has come on every machine.
fn earlier() -> SystemTime {
    SystemTime::now()
        .checked_sub(SKEW)
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Returns what an authority of this name is made with.
fn params_of(name: &str) -> io::Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

#[cfg(any(feature = "aws-lc-rs", feature = "ring"))]
fn new_key() -> io::Result<KeyPair> {
    KeyPair::generate().map_err(io::Error::other)
}

#[cfg(any(feature = "aws-lc-rs", feature = "ring"))]
fn read_key(pem: &str) -> io::Result<KeyPair> {
    KeyPair::from_pem(pem).map_err(io::Error::other)
}

// As for `own_certificate`.
#[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
fn new_key() -> io::Result<KeyPair> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
fn read_key(_: &str) -> io::Result<KeyPair> {
    Err(io::ErrorKind::Unsupported.into())
}
