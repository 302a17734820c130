//! oha: its arguments and its JSON output.

use crate::contest::Outcome;
use crate::generators::{Latency, Load, Reading, words};
use serde_json::Value;

/// Arguments for open loops at a constant rate. oha has no correction for coordinated omission with them:
/// latency is measured from the send.
///
/// # Errors
/// Returns an error for closed loops, in which it is not compared.
pub fn arguments(load: Load, seconds: u32) -> Outcome<Vec<String>> {
    let Load::Open { rate, connections } = load else { return Err("oha is compared in open loops".into()) };
    let mut arguments = words("--no-tui --output-format json --disable-color");
    arguments.extend(["-q".to_owned(), rate.to_string()]);
    arguments.extend(["-c".to_owned(), connections.to_string()]);
    arguments.extend(["-z".to_owned(), format!("{seconds}s")]);
    Ok(arguments)
}

/// Parses its output. Requests that its own end cuts off do not count as errors.
///
/// # Errors
/// Returns an error if a figure is missing, or a response was not 200.
pub fn read(json: &str) -> Outcome<Reading> {
    let result: Value = serde_json::from_str(json)?;
    let codes = result["statusCodeDistribution"].as_object().ok_or("no statusCodeDistribution")?;
    if codes.keys().any(|code| code != "200") {
        return Err(format!("answers other than 200: {codes:?}").into());
    }
    let figure = |pointer: &str| {
        result.pointer(pointer).and_then(Value::as_f64).ok_or_else(|| format!("no figure {pointer}"))
    };
    let requests = figure("/statusCodeDistribution/200")?;
    Ok(Reading {
        requests,
        requests_per_second: requests / figure("/summary/total")?,
        latency_us: Some(Latency {
            p50: figure("/latencyPercentiles/p50")? * 1e6,
            p99: figure("/latencyPercentiles/p99")? * 1e6,
        }),
        ..Reading::default()
    })
}
