//! Queries to a Prometheus: sent, or printed for someone else to save the answers.

use crate::cli::{GivenHeaders, LearnArgs};
use crate::failure::Failure;
use crate::output::tell;
use export::PrometheusApi;
use learn::prometheus::{Reader, queries};
use results::without_credentials;
use std::fmt::Write as _;

/// Sends every query, one after the other.
pub(super) fn send(url: &str, args: &LearnArgs, reader: &mut Reader) -> Result<(), Failure> {
    let shown = without_credentials(url);
    let headers = GivenHeaders::all(&args.prometheus_header).collect();
    let authorities = args.authorities().map_err(Failure::usage)?;
    let api = PrometheusApi::new(url, headers, &authorities)
        .map_err(|error| Failure::usage(format!("--prometheus {shown}: {error}")))?;
    let at = args.at.clone().unwrap_or_else(|| jiff::Timestamp::now().as_second().to_string());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::environment(&error).about("start the client"))?;
    for query in queries(args.range.as_secs()) {
        tell!("asks for {}", query.purpose);
        let answer = runtime
            .block_on(api.query(&query.text, Some(&at)))
            .map_err(|cause| Failure::broken(format!("query {shown} for {}: {cause}", query.purpose)))?;
        reader
            .read(answer.as_ref())
            .map_err(|error| Failure::broken(format!("query {shown} for {}: {error}", query.purpose)))?;
    }
    Ok(())
}

/// Commands that save the answers of a Prometheus in one file.
pub(super) fn describe(args: &LearnArgs) -> String {
    let at = args.at.as_deref().unwrap_or("$(date +%s)");
    let mut text = format!(
        "# Saves the answers for: meshmeter learn --prometheus answers.json\n\
         # They have names of workloads, namespaces and hosts, counts, sizes and times, and no contents of requests.\n\
         set -eu\nPROMETHEUS=http://127.0.0.1:9090\nAT=\"{at}\"\nrm -f answers.json\n"
    );
    for query in queries(args.range.as_secs()) {
        let _ = writeln!(
            text,
            "# {}\ncurl -fsS -G \"$PROMETHEUS/api/v1/query\" --data-urlencode \"time=$AT\" --data-urlencode 'query={}' >> answers.json",
            query.purpose, query.text
        );
    }
    text
}
