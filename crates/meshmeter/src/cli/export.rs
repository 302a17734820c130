//! Options of live metrics, shared by `load`, `run` and `fleet`.

use super::GivenHeaders;
use super::words::{one_of, word};
use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use export::{Authorities, Destination, HistogramForm, parse_header};
use results::units::parse_duration;
use results::without_credentials;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Help heading of these options.
const HEADING: &str = "Live metrics (docs/export.md)";
/// Minimum and maximum time between two snapshots.
const INTERVALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Labels that some series set themselves.
const OWN_LABELS: [&str; 10] =
    ["code", "kind", "le", "phase", "quantile", "version", "component", "role", "side", "state"];

/// Options of live metrics.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = HEADING)]
pub struct ExportArgs {
    /// Push the figures so far to a Prometheus by remote write, every second. Without a path, to
    /// /api/v1/write. A receiver that is down, slow or rejects data delays nothing: that is reported once and
    /// counted
    #[arg(long, value_name = "URL")]
    pub remote_write: Option<String>,

    /// Version of remote write
    #[arg(long, value_name = "1|2", value_enum, default_value_t, requires = "remote_write")]
    pub remote_write_version: RemoteWriteVersion,

    /// Form of histograms: `classic` has a series per bucket, `native` one series with buckets 0.27 % wide
    /// [default: classic in version 1, native in version 2]
    #[arg(long, value_name = "FORM", value_parser = form_parser(), requires = "remote_write", hide_possible_values = true)]
    pub remote_write_histograms: Option<HistogramForm>,

    /// Add a header to remote writes, such as 'Authorization: Bearer TOKEN', or those in a file, one per line;
    /// may be given several times
    #[arg(long, value_name = "K: V|@FILE", requires = "remote_write", value_parser = parse_export_header)]
    pub remote_write_header: Vec<GivenHeaders>,

    /// Push the figures so far to an OpenTelemetry collector by OTLP (HTTP, protobuf), every second. Without
    /// a path, to /v1/metrics
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,

    /// Add a header to OTLP requests, or those in a file, one per line; may be given several times
    #[arg(long, value_name = "K: V|@FILE", requires = "otlp", value_parser = parse_export_header)]
    pub otlp_header: Vec<GivenHeaders>,

    /// Verify HTTPS receivers against the CAs in this file, PEM [default: the system's]
    #[arg(long, value_name = "FILE")]
    pub export_cacert: Option<PathBuf>,

    /// Add a label to every series sent, such as team=mesh; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_label)]
    pub label: Vec<(String, String)>,

    /// Time between two snapshots, in whole seconds
    #[arg(long, value_name = "D", default_value = "1s", value_parser = parse_interval)]
    pub export_interval: Duration,
}

/// Version of remote write.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum RemoteWriteVersion {
    /// Accepted by every receiver
    #[default]
    #[value(name = "1")]
    One,
    /// With native histograms, start times, and counts of written samples
    #[value(name = "2")]
    Two,
}

fn form_parser() -> impl TypedValueParser<Value = HistogramForm> {
    one_of([
        (word("classic", "A series per bucket"), HistogramForm::Classic),
        (word("native", "One series with exponential buckets"), HistogramForm::Native),
    ])
}

impl ExportArgs {
    /// True if figures are sent anywhere.
    pub fn is_asked_for(&self) -> bool {
        self.remote_write.is_some() || self.otlp.is_some()
    }

    /// Receivers.
    pub fn destinations(&self) -> Result<Vec<Destination>, String> {
        let remote_write = self.remote_write.as_deref().map(|url| {
            let form = self.remote_write_histograms;
            let protocol = match self.remote_write_version {
                RemoteWriteVersion::One => {
                    export::Protocol::RemoteWrite1(form.unwrap_or(HistogramForm::Classic))
                }
                RemoteWriteVersion::Two => {
                    export::Protocol::RemoteWrite2(form.unwrap_or(HistogramForm::Native))
                }
            };
            Destination::new(url, protocol, GivenHeaders::all(&self.remote_write_header).collect())
                .map_err(|error| format!("--remote-write {}: {error}", without_credentials(url)))
        });
        let otlp = self.otlp.as_deref().map(|url| {
            Destination::new(url, export::Protocol::Otlp, GivenHeaders::all(&self.otlp_header).collect())
                .map_err(|error| format!("--otlp {}: {error}", without_credentials(url)))
        });
        let destinations: Vec<Destination> =
            remote_write.into_iter().chain(otlp).collect::<Result<_, String>>()?;
        let Some(path) = &self.export_cacert else { return Ok(destinations) };
        if !destinations.iter().any(Destination::is_https) {
            return Err("--export-cacert is for receivers with an https:// URL, and there is none".to_owned());
        }
        let authorities =
            read_authorities(path).map_err(|error| format!("--export-cacert {}: {error}", path.display()))?;
        Ok(destinations.into_iter().map(|receiver| receiver.with_authorities(authorities.clone())).collect())
    }
}

pub(super) fn read_authorities(path: &Path) -> Result<Authorities, String> {
    let text = std::fs::read(path).map_err(|error| error.to_string())?;
    Authorities::from_pem(&text).map_err(|error| error.to_string())
}

pub(super) fn parse_export_header(text: &str) -> Result<GivenHeaders, String> {
    GivenHeaders::parse(text, parse_header)
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected a name and a value, such as team=mesh")?;
    let is_first = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    let is_name =
        name.starts_with(is_first) && name.chars().all(|letter| is_first(letter) || letter.is_ascii_digit());
    if !is_name || name.starts_with("__") {
        return Err(format!(
            "`{name}` is not a label name: letters, digits and _, no digit first, no __ first"
        ));
    }
    if OWN_LABELS.contains(&name) {
        return Err(format!("some series have a label `{name}` of their own"));
    }
    if value.is_empty() {
        return Err("a label needs a value".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text).map_err(|error| error.to_string())?;
    let (least, most) = INTERVALS;
    if interval.subsec_nanos() > 0 || !(least..=most).contains(&interval) {
        return Err("expected whole seconds, 1s to 1m".to_owned());
    }
    Ok(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_names_with_values() {
        assert_eq!(parse_label("team=a=b").unwrap(), ("team".to_owned(), "a=b".to_owned()));
        for text in ["team", "=x", "team=", "1=x", "__name__=x", "le=1", "quantile=1", "my-team=x", "ä=x"] {
            assert!(parse_label(text).is_err(), "{text}");
        }
    }

    #[test]
    fn intervals_are_whole_seconds() {
        assert_eq!(parse_interval("5s"), Ok(Duration::from_secs(5)));
        for text in ["0s", "500ms", "1500ms", "2m"] {
            assert!(parse_interval(text).is_err(), "{text}");
        }
    }
}
