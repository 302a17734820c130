//! The way in which connections of `meshmeter load` are opened.

use crate::cli::{HttpVersion, LoadArgs};
use crate::failure::Failure;
use crate::{local_ports, open_files};
use http::HeaderValue;
use http::header::CONNECTION;
use load::{
    Address, Family, LoadSpec, Lookups, Opening, ServerPer, SourceError, Target, Targets, UnixSocketError,
};

/// The unix socket to connect to, if one is given.
pub fn unix_socket(args: &LoadArgs) -> Result<Option<Address>, Failure> {
    let Some(path) = &args.connecting.unix_socket else { return Ok(None) };
    Address::unix_socket(path).map(Some).map_err(|error| match &error {
        UnixSocketError::TooLong { .. } => Failure::from_usage(&error)
            .with_hint("a relative path, or a symbolic link to the directory, is shorter"),
        UnixSocketError::NotASocket(_) => Failure::from_usage(&error),
        UnixSocketError::NotFound { .. } => {
            Failure::environment(&error).with_hint("is the server running, and is the path right?")
        }
        UnixSocketError::Denied { .. } => {
            Failure::environment(&error).with_hint("connecting requires the right to write to the socket")
        }
    })
}

/// The way in which connections are opened. Leaves out addresses of the targets that the sources cannot reach.
pub fn plan(args: &LoadArgs, targets: &mut Targets) -> Result<Opening, Failure> {
    let sources = args.connecting.source;
    if let Some(sources) = &sources {
        targets
            .keep_reachable_from(sources)
            .and_then(|()| sources.check())
            .map_err(|error| source_failure(&error))?;
    }
    let per_request = args.connecting.new_connection_per_request;
    if per_request && args.targets.server_per == ServerPer::Connection {
        return Err(Failure::usage(
            "--server-per connection: with --new-connection-per-request no connection stays",
        ));
    }
    if per_request && targets.family == Family::Http && args.http.http == HttpVersion::Http1 {
        say_close(targets);
    }
    let lookups = args.connecting.resolve_every.map(Lookups::by_system);
    if lookups.is_some() && !targets.servers.iter().any(Target::is_named) {
        return Err(Failure::usage("--resolve-every: the hosts are addresses, which no resolver changes"));
    }
    Ok(Opening { sources, proxy_protocol: args.connecting.proxy_protocol, per_request, lookups })
}

/// Tells HTTP/1.1 servers that no other request follows, unless a header was given.
fn say_close(targets: &mut Targets) {
    for request in targets.servers.iter_mut().flat_map(|server| &mut server.requests) {
        if request.header(&CONNECTION).is_none() {
            request.headers.push((CONNECTION, HeaderValue::from_static("close")).into());
        }
    }
}

fn source_failure(error: &SourceError) -> Failure {
    let failure = match error {
        SourceError::Unusable { .. } => Failure::environment(error),
        _ => Failure::from_usage(error),
    };
    failure.about("--source").with_some_hint(error.hint())
}

/// Open files of a generator beside its connections.
const OTHER_FILES: u64 = 16;

/// Rejects more connections than there are local ports to one address, or open files: each would fail, after the others.
pub fn check_limits(spec: &LoadSpec) -> Result<(), Failure> {
    if spec.opening.per_request {
        // How many there are at a time depends on the target.
        open_files::raise_limit();
        return Ok(());
    }
    check_ports(spec)?;
    open_files::allow(spec.own_connections(), OTHER_FILES)
}

fn check_ports(spec: &LoadSpec) -> Result<(), Failure> {
    let Some((address, connections)) = spec.most_to_one_address() else { return Ok(()) };
    let Some((first, last)) = local_ports::range() else { return Ok(()) };
    let sources = spec.opening.sources.map_or(1, |sources| sources.count());
    let ports = (last + 1).saturating_sub(first) as usize;
    if connections <= ports.saturating_mul(sources) {
        return Ok(());
    }
    let from = if sources > 1 { format!(" on each of {sources} source addresses") } else { String::new() };
    Err(Failure::broken(format!(
        "{connections} connections to {address} need a local port each, and there are {ports}{from} \
         (net.ipv4.ip_local_port_range: {first} to {last})"
    ))
    .with_hint(
        "open them from more local addresses, such as --source 10.0.0.0/24 (on loopback --source 127.0.0.0/24), or \
         widen the range: sysctl -w net.ipv4.ip_local_port_range='1024 65535'",
    ))
}
