//! TLS in `meshmeter load`: trust, identity and handshakes, and options that would have no effect.

use crate::cli::LoadArgs;
use crate::failure::Failure;
use load::{ClientIdentity, Handshakes, Targets, TlsClient, TlsError, Verification};

/// TLS settings of connections; `None` if no target uses TLS.
pub fn plan(args: &LoadArgs, targets: &Targets) -> Result<Option<TlsClient>, Failure> {
    if targets.servers.iter().all(|target| target.server_name.is_none()) {
        return match check_unused_options(args) {
            Some(option) => Err(Failure::usage(format!(
                "{option} is for https://, grpcs://, wss:// and tls:// URLs, and there is none"
            ))),
            None => Ok(None),
        };
    }
    let verification = match &args.cacert {
        _ if args.insecure => Verification::Off,
        Some(path) => Verification::Authorities(path.clone()),
        None => Verification::SystemRoots,
    };
    let identities = match (&args.cert, &args.key) {
        (Some(certificate), Some(key)) => ClientIdentity::numbered(certificate, key),
        _ => Ok(Vec::new()),
    };
    let handshakes = Handshakes {
        version: args.handshakes.tls_version,
        resumed_servers: if args.handshakes.resume_sessions { targets.servers.len() } else { 0 },
    };
    let client = identities.and_then(|identities| TlsClient::new(&verification, &identities, handshakes));
    client.map(Some).map_err(|error| match error {
        TlsError::NoSystemRoots(_) => Failure::environment(&error)
            .with_hint("name an authority with --cacert, or do not verify the server with --insecure"),
        TlsError::Library(_) => Failure::environment(&error),
        _ => Failure::from_usage(&error),
    })
}

/// The first given option that has no effect without TLS.
fn check_unused_options(args: &LoadArgs) -> Option<&'static str> {
    let options = [
        ("--insecure", args.insecure),
        ("--cacert", args.cacert.is_some()),
        ("--cert", args.cert.is_some()),
        ("--sni", args.sni.is_some()),
        ("--tls-version", args.handshakes.tls_version.is_some()),
        ("--resume-sessions", args.handshakes.resume_sessions),
    ];
    options.into_iter().find_map(|(option, given)| given.then_some(option))
}
