//! Failures of a run of the generator, with hints.

use crate::failure::Failure;
use load::{ErrorKind, LoadError, LoadSpec};
use results::LoadResult;

/// Servers named when none can be reached; the others are only counted.
const NAMED_SERVERS: usize = 3;

pub(super) fn cannot_run(error: &LoadError) -> Failure {
    let failure = Failure::environment(error);
    failure.with_some_hint(error.hint())
}

/// The most common error if no connection could be opened, so that nothing was sent.
pub(super) fn unreachable(result: &LoadResult) -> Option<ErrorKind> {
    if !result.verdict.reasons.iter().any(|reason| reason.starts_with("unreachable:")) {
        return None;
    }
    let seen = ErrorKind::ALL.into_iter().filter(|kind| result.errors_of_run(kind.name()) > 0);
    seen.max_by_key(|kind| result.errors_of_run(kind.name()))
}

pub(super) fn unreachable_failure(spec: &LoadSpec, kind: ErrorKind) -> Failure {
    let servers: Vec<&str> = spec.targets.servers.iter().map(|target| target.authority.as_str()).collect();
    let (first, others) = servers.split_at(servers.len().min(NAMED_SERVERS));
    let others = if others.is_empty() { String::new() } else { format!(" and {} others", others.len()) };
    let failure = Failure::broken(format!("connect to {}{others}: {}", first.join(", "), kind.meaning()));
    failure.with_some_hint(kind.hint())
}
