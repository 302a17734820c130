//! Turns options into listeners, and loads the certificate for those with TLS.

use crate::cli::{ServeArgs, TlsArgs};
use crate::failure::Failure;
use crate::output::Destination;
use service::{Listener, Protocol, Tls, TlsError};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Default address for HTTP without TLS.
const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
/// Default address for HTTPS.
const HTTPS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8443);
/// Default names of a generated certificate.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Listeners, with the plaintext HTTP listener first, and their certificate.
pub fn from_args(args: &ServeArgs) -> Result<(Vec<Listener>, Option<Tls>), Failure> {
    let TlsArgs { tls, tls_listen, tls_cert, http3, .. } = &args.tls;
    let over_tcp = args.tcp.tcp_tls_listen;
    // TLS without an address means HTTPS.
    let asked = *tls || tls_cert.is_some();
    let https = tls_listen.or((*http3 || (asked && over_tcp.is_none())).then_some(HTTPS));
    let listener = |protocol, tls| move |address| Listener { address, protocol, tls };
    let listeners: Vec<Listener> = Some(args.listen.unwrap_or(HTTP))
        .map(listener(Protocol::Http, false))
        .into_iter()
        .chain(https.map(listener(Protocol::Http, true)))
        .chain(args.tcp.tcp_listen.map(listener(Protocol::Tcp, false)))
        .chain(over_tcp.map(listener(Protocol::Tcp, true)))
        .collect();
    if listeners.iter().any(|listener| listener.tls) {
        return Ok((listeners, Some(certificate(&args.tls)?)));
    }
    let without_effect = [
        ("--tls-name", !args.tls.tls_name.is_empty()),
        ("--tls-ca-out", args.tls.tls_ca_out.is_some()),
        ("--client-ca", args.tls.client_ca.is_some()),
    ];
    match without_effect.iter().find(|(_, given)| *given) {
        Some((option, _)) => {
            let problem = format!("{option} says how to serve TLS, and nothing is served over TLS");
            Err(Failure::usage(problem).with_hint("add --tls, --tls-listen or --tcp-tls-listen"))
        }
        None => Ok((listeners, None)),
    }
}

fn certificate(args: &TlsArgs) -> Result<Tls, Failure> {
    let client_authority = args.client_ca.as_deref();
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        return Tls::from_files(certificate, key, client_authority).map_err(|error| failure(&error));
    }
    let names: Vec<String> = match &args.tls_name[..] {
        [] => NAMES.map(str::to_owned).to_vec(),
        names => names.to_vec(),
    };
    let (tls, authority) = Tls::own(&names, client_authority).map_err(|error| failure(&error))?;
    if let Some(path) = &args.tls_ca_out {
        Destination::from_path(path).write(authority.as_bytes())?;
    }
    Ok(tls)
}

fn failure(error: &TlsError) -> Failure {
    let failure = match error {
        TlsError::Make { .. } => Failure::from_usage(error),
        _ => Failure::environment(error),
    };
    failure.with_some_hint(error.hint())
}
