//! The encrypted half of a connection: which certificates are believed, and the handshake.
//!
//! Roots are those of the system, so that a company's own authority counts as it does for every other program, and one that the system
//! no longer trusts is not trusted here either. Reading them takes a while and some memory, so it is done at the first encrypted
//! delivery and once.

use std::io;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Where trust comes from.
#[derive(Debug, Clone, Default)]
pub enum Roots {
    /// The system's certificates.
    #[default]
    System,
    /// These and no others.
    Only(Vec<CertificateDer<'static>>),
}

/// Why there is no encrypted connection.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody to trust.
    #[error("no root certificates on this system; install the package ca-certificates")]
    NoRoots,
    /// The provider of cryptography refused its own defaults.
    #[error("TLS could not be set up")]
    Setup(#[source] rustls::Error),
    /// A host that cannot stand in a certificate.
    #[error("the host cannot stand in a certificate")]
    Name(#[source] InvalidDnsNameError),
    /// The other side, or its certificate, was not accepted.
    #[error("TLS failed")]
    Handshake(#[source] io::Error),
}

/// Makes connections encrypted.
#[derive(Default)]
pub(crate) struct Tls {
    roots: Roots,
    connector: OnceCell<TlsConnector>,
}

impl Tls {
    pub(crate) fn new(roots: Roots) -> Self {
        Self { roots, connector: OnceCell::new() }
    }

    /// Shakes hands as a client that knows `host`, which is bracketed where it is an IPv6 address.
    pub(crate) async fn connect(&self, host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, Error> {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(Error::Name)?;
        let connector = self.connector.get_or_try_init(|| connector(&self.roots)).await?;
        connector.connect(name, stream).await.map_err(Error::Handshake)
    }
}

async fn connector(roots: &Roots) -> Result<TlsConnector, Error> {
    let certificates = match roots {
        Roots::Only(certificates) => certificates.clone(),
        // On cancel the thread reads to its end and the result is dropped; the next delivery reads again.
        Roots::System => tokio::task::spawn_blocking(|| rustls_native_certs::load_native_certs().certs)
            .await
            .unwrap_or_default(),
    };
    let mut store = RootCertStore::empty();
    // The odd certificate that cannot be read is no reason to trust none.
    store.add_parsable_certificates(certificates);
    if store.is_empty() {
        return Err(Error::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(Error::Setup)?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
