//! A certificate authority of the test's own.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};

/// An authority with a server's and a client's certificate for this machine. Two of them do not
/// trust each other, which is how a test gets a wrong one.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The authority's certificate, PEM.
    pub authority: String,
    /// The server's certificate, PEM.
    pub server: String,
    /// The server's private key, PEM.
    pub server_key: String,
    /// The client's certificate, PEM.
    pub client: String,
    /// The client's private key, PEM.
    pub client_key: String,
}

/// Where [`Certificates::write`] put what a client needs.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// The authority's certificate.
    pub authority: PathBuf,
    /// The client's certificate.
    pub client: PathBuf,
    /// The client's private key.
    pub client_key: PathBuf,
}

impl Certificates {
    /// Makes an authority and both certificates, for this machine alone.
    ///
    /// # Errors
    /// If the cryptographic library refuses.
    pub fn generate() -> Result<Self> {
        Certificates::of(Ipv4Addr::LOCALHOST)
    }

    /// As [`generate`](Certificates::generate), for servers at that address as well.
    ///
    /// # Errors
    /// If the cryptographic library refuses.
    pub fn of(address: Ipv4Addr) -> Result<Self> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority.distinguished_name.push(DnType::CommonName, "wok tests");
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

        let issue = |name: &str| -> Result<(String, String)> {
            let hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), address.to_string()];
            let mut params = CertificateParams::new(hosts)?;
            params.distinguished_name.push(DnType::CommonName, name);
            let key = KeyPair::generate()?;
            Ok((params.signed_by(&key, &authority)?.pem(), key.serialize_pem()))
        };
        let (server, server_key) = issue("server")?;
        let (client, client_key) = issue("client")?;
        Ok(Certificates { authority: authority.pem(), server, server_key, client, client_key })
    }

    /// Writes what a client needs into `directory`.
    ///
    /// # Errors
    /// If the directory is not writable.
    pub fn write(&self, directory: &Path) -> Result<CertificateFiles> {
        let write = |name: &str, text: &str| -> Result<PathBuf> {
            let path = directory.join(name);
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
            Ok(path)
        };
        Ok(CertificateFiles {
            authority: write("authority.pem", &self.authority)?,
            client: write("client.pem", &self.client)?,
            client_key: write("client-key.pem", &self.client_key)?,
        })
    }
}
