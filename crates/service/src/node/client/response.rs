//! Responses: read completely, discarded, and checked for success.

use super::grpc_call;
use crate::node::failure::StepFailure;
use crate::node::tally::Attempt;
use http::Response;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

/// Reads a response to its end.
pub(super) async fn receive(
    response: Response<Incoming>,
    is_grpc: bool,
    attempt: &mut Attempt<'_>,
) -> Result<(), StepFailure> {
    let status = response.status();
    let mut ended = if is_grpc { grpc_call::status(response.headers()) } else { None };
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| StepFailure(format!("the response: {}", describe(&error))))?;
        if let Some(trailers) = frame.trailers_ref().filter(|_| is_grpc) {
            ended = grpc_call::status(trailers).or(ended);
        }
    }
    attempt.received();
    if !status.is_success() {
        return Err(StepFailure(format!("status {}", status.as_u16())));
    }
    match ended {
        _ if !is_grpc => Ok(()),
        Some(ended) => ended.map_err(StepFailure),
        None => Err(StepFailure("a response without grpc-status".to_owned())),
    }
}

/// An error with its cause, which hyper keeps separate.
pub(super) fn describe(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
