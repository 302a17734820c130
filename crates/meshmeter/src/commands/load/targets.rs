//! The servers and requests of `meshmeter load`.

use super::content_file::read_file;
use super::replay::{self, Replay};
use super::{connecting, grpc, http_version, options, raw, traffic};
use crate::cli::{GivenHeaders, LoadArgs};
use crate::failure::Failure;
use load::{Body, Family, Order, Protocol, RequestTemplate, ServerPer, TargetError, Targets};
use std::path::Path;

/// Bounds the memory of `--per-url`: each thread has a histogram per URL.
const MAX_URLS_APART: usize = 100;

/// Servers with their requests, and the protocol.
pub struct Planned {
    /// URLs for results.
    pub urls: Vec<String>,
    pub targets: Targets,
    pub protocol: Protocol,
}

/// Targets and protocol according to the URLs and request options, or to a traffic file or a recording.
pub fn plan(args: &LoadArgs, replay: Option<&mut Replay>) -> Result<Planned, Failure> {
    let (urls, mut targets) = match (traffic::named(args)?, replay.and_then(Replay::take_requests)) {
        (Some(_), Some(_)) => {
            return Err(Failure::usage(
                "a traffic file has all requests of a load, and so has the recording",
            )
            .with_hint("name a URL, or replay a file of instants"));
        }
        (None, Some(requests)) => {
            (vec![load::shown_url(&args.urls[0])], replay::targets(args, &template(args)?, requests)?)
        }
        (Some(file), None) => (vec![load::shown_url(&file.url)], traffic::targets(args, &file)?),
        (None, None) => (args.urls.iter().map(|url| load::shown_url(url)).collect(), of_urls(args)?),
    };
    if let Some(order) = args.targets.order {
        targets.order = order;
    }
    targets.server_per = args.targets.server_per;
    if let (ServerPer::Connection, Some(Order::Turn)) = (args.targets.server_per, args.targets.order) {
        return Err(Failure::usage("--order turn: with --server-per connection requests are drawn"));
    }
    if targets.server_per == ServerPer::Connection && !targets.sessions.is_empty() {
        return Err(Failure::usage(
            "--server-per connection: a session keeps its server, whatever its connections",
        ));
    }
    targets.connections_per_server = args.targets.connections_per_server.map(|count| count as usize);
    options::check(args, targets.family)?;
    let protocol = match targets.family {
        Family::Grpc => {
            grpc::check_request(args)?;
            http_version::of_grpc(&args.http)
        }
        Family::Raw => Protocol::Raw(raw::expected_reply(args, &targets)?),
        Family::WebSocket => {
            Protocol::WebSocket(args.websocket.pushes.unwrap_or_else(|| http_version::in_order(&args.http)))
        }
        Family::Http => http_version::plan(&args.http)?,
    };
    Ok(Planned { urls, targets, protocol })
}

/// Part that all requests to URLs have in common.
fn template(args: &LoadArgs) -> Result<RequestTemplate, Failure> {
    Ok(RequestTemplate {
        method: args.method.clone(),
        headers: GivenHeaders::of_requests(&args.header).collect(),
        body: body(args.body.as_deref(), args.body_size)?,
        connect_to: args.connect_to.clone(),
        unix_socket: connecting::unix_socket(args)?,
        sni: args.sni.clone(),
    })
}

fn of_urls(args: &LoadArgs) -> Result<Targets, Failure> {
    let template = template(args)?;
    check_per_url(args)?;
    let mut targets = load::resolve(&args.urls, &template).map_err(|error| failure(&error))?;
    if targets.family == Family::Raw && args.body.is_none() {
        targets.set_body(&raw::message(args).into());
    }
    Ok(targets)
}

fn check_per_url(args: &LoadArgs) -> Result<(), Failure> {
    if args.output.per_url && args.urls.len() > MAX_URLS_APART {
        let failure = Failure::usage(format!("--per-url takes at most {MAX_URLS_APART} URLs"));
        return Err(failure.with_hint("a URL with a range, such as http://host/{1..1000}, counts as one"));
    }
    Ok(())
}

pub(super) fn failure(error: &TargetError) -> Failure {
    match error {
        TargetError::Resolve { .. } | TargetError::NoAddress(_) => Failure::environment(error),
        TargetError::Range { .. } | TargetError::RangeOfCredentials(_) => Failure::from_usage(error).with_hint(
            "a brace that does not belong to a range is written %7B or %7D; quote the URL, since shells expand braces too",
        ),
        TargetError::Port { port, .. } if port.is_empty() => {
            Failure::from_usage(error).with_hint("such as tcp://127.0.0.1:9000")
        }
        TargetError::PathOfRaw(_) | TargetError::CredentialsOfRaw(_) => {
            Failure::from_usage(error).with_hint("such as tcp://127.0.0.1:9000")
        }
        TargetError::HeaderOfBody(_) | TargetError::HeaderOfOpening(_) | TargetError::RepeatedHeader(_) => {
            Failure::from_usage(error).with_hint("leave it out of --header")
        }
        TargetError::RangeOfRaw => {
            Failure::from_usage(error).with_hint("the content of a file, --body @FILE, is sent as it is")
        }
        TargetError::TooManyServers(_) => {
            Failure::from_usage(error).with_hint("ranges in the path, and only these, may be longer")
        }
        TargetError::Families(_) => Failure::from_usage(error).with_hint("give each a run of its own"),
        TargetError::Weight(_) => Failure::from_usage(error).with_hint("such as 3=http://127.0.0.1:8080/"),
        _ => Failure::from_usage(error).with_hint("such as http://127.0.0.1:8080/path"),
    }
}

/// A body of this many bytes of filler.
pub(super) fn filler(size: u64) -> Result<Body, Failure> {
    let size = usize::try_from(size).map_err(|_| Failure::usage("the body is too large for this machine"))?;
    Ok(vec![b'x'; size].into())
}

/// The content of a file is sent as it is; ranges are of the command line alone.
fn body(text: Option<&str>, size: Option<u64>) -> Result<Body, Failure> {
    if let Some(size) = size {
        return filler(size);
    }
    match text {
        Some(text) if text.starts_with('@') => Ok(read_file("the body", Path::new(&text[1..]))?.into()),
        Some(text) => Ok(Body::with_ranges(text.as_bytes())),
        None => Ok(Body::default()),
    }
}
