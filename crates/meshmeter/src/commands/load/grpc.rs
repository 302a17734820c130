//! gRPC in `meshmeter load`: before the run, URLs of methods become calls, with their messages encoded.

use super::content_file::read_file;
use crate::cli::{Bidirectional, GivenHeaders, GrpcArgs, LoadArgs};
use crate::failure::Failure;
use grpc::{DescribeError, Description, Method, MethodPath};
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use load::{Address, Body, Family, GrpcCall, Request, Target, Targets, TlsClient};
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::path::Path;

/// Rejects HTTP options for calls, which have their own method and content.
pub fn check_request(args: &LoadArgs) -> Result<(), Failure> {
    if args.method != http::Method::GET {
        return Err(Failure::usage("--method is not for gRPC: a call is always a POST"));
    }
    if args.body.is_some() || args.body_size.is_some() {
        let failure = Failure::usage("--body and --body-size are not for gRPC: its messages have fields");
        return Err(failure.with_hint("give them in JSON, such as --message '{\"name\": \"x\"}'"));
    }
    Ok(())
}

/// Turns the requests into calls if the URLs are gRPC URLs: their paths name methods. Queries a server for
/// the description of each method that no file describes.
pub fn make_calls(args: &LoadArgs, targets: &mut Targets, tls: Option<&TlsClient>) -> Result<(), Failure> {
    if targets.family != Family::Grpc {
        return Ok(());
    }
    let json = messages(&args.grpc)?;
    let mut calls: HashMap<String, GrpcCall> = HashMap::new();
    for server in &mut targets.servers {
        let mut requests = std::mem::take(&mut server.requests);
        for request in &mut requests {
            let path = method_path(request)?;
            let call = match calls.get(path.as_str()) {
                Some(call) => call.clone(),
                None => {
                    let description = description(args, server, request, &path, tls)?;
                    let call = call(&args.grpc, &description, &path, &json)?;
                    calls.insert(path.as_str().to_owned(), call.clone());
                    call
                }
            };
            request.make_call(path.as_str(), call, args.timeout);
        }
        server.requests = requests;
    }
    Ok(())
}

/// Text of `--message`; empty if not given.
fn messages(args: &GrpcArgs) -> Result<String, Failure> {
    match args.message.as_deref() {
        Some(text) if text.starts_with('@') => {
            let bytes = read_file("the messages", Path::new(&text[1..]))?;
            String::from_utf8(bytes).map_err(|_| Failure::usage("--message: the file is not UTF-8"))
        }
        Some(text) if Body::with_ranges(text.as_bytes()).constant().is_none() => Err(Failure::usage(
            "--message has a range of numbers, and the messages of all calls are the same",
        )
        .with_hint("the content of a file, --message @FILE, is sent as it is")),
        Some(text) => Ok(text.to_owned()),
        None => Ok(String::new()),
    }
}

fn method_path(request: &Request) -> Result<MethodPath, Failure> {
    let path = request.path.constant().ok_or_else(|| {
        Failure::usage("the path of a gRPC URL names a method: it has no place for numbers")
    })?;
    MethodPath::parse(&path).map_err(|error| failure(&error))
}

/// Source of the description of the called method.
fn description(
    args: &LoadArgs,
    target: &Target,
    request: &Request,
    path: &MethodPath,
    tls: Option<&TlsClient>,
) -> Result<Description, Failure> {
    if !args.grpc.proto.is_empty() {
        let (files, folders) = (args.grpc.proto.clone(), args.grpc.proto_path.clone());
        return Ok(Description::Proto { files, folders });
    }
    if !args.grpc.protoset.is_empty() {
        return Ok(Description::Protoset(args.grpc.protoset.clone()));
    }
    let tls = tls.zip(target.server_name.clone());
    let addresses: Vec<_> = target.addresses.iter().filter_map(Address::ip).collect();
    if addresses.is_empty() && !grpc::is_built_in(path) {
        return Err(Failure::usage(format!(
            "--unix-socket: the server is not asked over a unix socket which method `{path}` is"
        ))
        .with_hint("describe the method with --proto or --protoset"));
    }
    Ok(Description::Reflection(grpc::Server {
        authority: request.authority.clone(),
        addresses,
        tls: tls.map(|(client, name)| grpc::Tls { config: client.config(), name }),
        metadata: metadata(args, request),
        timeout: args.timeout,
    }))
}

/// Metadata of requests to the server's reflection: the given headers, and the credentials of the URL.
fn metadata(args: &LoadArgs, request: &Request) -> Vec<(HeaderName, HeaderValue)> {
    let mut metadata: Vec<_> = GivenHeaders::all(&args.header).collect();
    if !metadata.iter().any(|(name, _)| *name == AUTHORIZATION) {
        let credentials = request.header(&AUTHORIZATION).and_then(|header| header.value().constant());
        let credentials = credentials.and_then(|value| HeaderValue::try_from(value).ok());
        metadata.extend(credentials.map(|value| (AUTHORIZATION, value)));
    }
    metadata
}

/// Builds the call of a method with these messages.
fn call(
    args: &GrpcArgs,
    description: &Description,
    path: &MethodPath,
    json: &str,
) -> Result<GrpcCall, Failure> {
    let method = grpc::describe(description, path).map_err(|error| failure(&error))?;
    refuse_what_streams_have(args, &method, path)?;
    let messages = method.encode(json).map_err(|error| {
        let failure = Failure::from_usage(&error).about("--message");
        failure.with_some_hint(error.hint())
    })?;
    let streaming = method.streaming();
    let as_given = || NonZeroU64::new(messages.len() as u64).unwrap_or(NonZeroU64::MIN);
    let count = args.stream_messages.unwrap_or_else(as_given);
    let at_once = streaming.client && !(streaming.server && args.bidi == Bidirectional::PingPong);
    refuse_too_much(&messages, if at_once { count.get() } else { 1 })?;
    let call = match (streaming.client, streaming.server) {
        (false, server) => GrpcCall::unary(&messages, server),
        (true, true) if args.bidi == Bidirectional::PingPong => GrpcCall::dialogue(&messages, count),
        (true, server) => GrpcCall::stream(&messages, count, server),
    };
    call.map_err(|error| Failure::from_usage(&error).about("--message"))
}

/// Limits what a call sends at once: it is held in memory as long as the server has room for it.
fn refuse_too_much(messages: &[Vec<u8>], count: u64) -> Result<(), Failure> {
    let longest = messages.iter().map(Vec::len).max().unwrap_or(0) as u64;
    if count.saturating_mul(longest) > load::MAX_BODY_BYTES {
        return Err(Failure::usage("the messages that a call sends at once are larger than 64 MiB")
            .with_hint("send fewer with --stream-messages"));
    }
    Ok(())
}

/// Rejects streaming options for methods without streams.
fn refuse_what_streams_have(args: &GrpcArgs, method: &Method, path: &MethodPath) -> Result<(), Failure> {
    let streaming = method.streaming();
    if args.stream_messages.is_some() && !streaming.client {
        return Err(Failure::usage(format!(
            "--stream-messages is for methods that take a stream, and `{path}` takes one message"
        )));
    }
    if args.bidi != Bidirectional::default() && !(streaming.client && streaming.server) {
        return Err(Failure::usage(format!(
            "--bidi is for methods with streams on both sides, and `{path}` has not"
        )));
    }
    Ok(())
}

fn failure(error: &DescribeError) -> Failure {
    let failure =
        if error.is_of_environment() { Failure::environment(error) } else { Failure::from_usage(error) };
    failure.with_some_hint(error.hint())
}
