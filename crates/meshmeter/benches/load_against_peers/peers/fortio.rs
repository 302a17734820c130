//! fortio: its arguments and its JSON output.

use crate::contest::Outcome;
use crate::generators::{Latency, Load, Reading, words};
use serde_json::Value;

/// Arguments. Its histogram starts with steps of 10 us, the finest that it interpolates well. Over HTTP/2,
/// too, it has one request at a time per connection, so it gets as many connections as others have streams.
///
/// # Errors
/// Returns an error for other tasks.
pub fn arguments(load: Load, seconds: u32) -> Outcome<Vec<String>> {
    // With fortio, rate 0 is a closed loop.
    let (rate, connections) = match load {
        Load::Closed { connections } => (0, connections),
        Load::Http2 { connections, streams } => (0, connections * streams),
        Load::Open { rate, connections } => (rate, connections),
        other => return Err(format!("fortio is not asked for {other:?} here").into()),
    };
    let mut arguments = words("load -r 0.00001 -p 50,99 -json -");
    if let Load::Http2 { .. } = load {
        arguments.push("-h2".to_owned());
    }
    arguments.extend(["-qps".to_owned(), rate.to_string()]);
    arguments.extend(["-c".to_owned(), connections.to_string()]);
    arguments.extend(["-t".to_owned(), format!("{seconds}s")]);
    Ok(arguments)
}

/// Parses its JSON output.
///
/// # Errors
/// Returns an error if a figure is missing, or a response was not 200.
pub fn read(json: &str) -> Outcome<Reading> {
    let result: Value = serde_json::from_str(json)?;
    let codes = result["RetCodes"].as_object().ok_or("no RetCodes")?;
    if codes.keys().any(|code| code != "200") {
        return Err(format!("answers other than 200: {codes:?}").into());
    }
    let figure = |pointer: &str| {
        result.pointer(pointer).and_then(Value::as_f64).ok_or_else(|| format!("no figure {pointer}"))
    };
    let percentile_us = |percent: f64| {
        let listed = result["DurationHistogram"]["Percentiles"].as_array();
        let entry = listed.into_iter().flatten().find(|entry| entry["Percentile"].as_f64() == Some(percent));
        let seconds = entry.and_then(|entry| entry["Value"].as_f64());
        seconds.map(|seconds| seconds * 1e6).ok_or_else(|| format!("no percentile {percent}"))
    };
    Ok(Reading {
        requests: figure("/DurationHistogram/Count")?,
        requests_per_second: figure("/ActualQPS")?,
        latency_us: Some(Latency { p50: percentile_us(50.0)?, p99: percentile_us(99.0)? }),
        ..Reading::default()
    })
}
