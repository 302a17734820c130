//! Options of `meshmeter learn`.

use super::GivenHeaders;
use super::export::{parse_export_header, read_authorities};
use clap::{ArgGroup, Args, ValueHint};
use export::Authorities;
use results::units::{parse_duration, parse_fraction};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest period that is learned from.
const MAX_RANGE: Duration = Duration::from_secs(31 * 24 * 3600);

/// Learn a topology from a running mesh's telemetry: services, calls, rates, sizes, times
///
/// Reads Istio's standard metrics of sidecars, gateways, waypoints and ztunnels, or those of Linkerd or Cilium's Hubble, from a
/// Prometheus, from its saved answers or from Kiali's graph, and writes a topology file with a driver for each entry. `NAME.provenance.json` beside it
/// has the source, period and spread of each figure, the rates of the drivers, and findings: missing callers, reporters that
/// disagree, counters that were reset, circles. Metrics have no order of calls; traces (--traces) have it, with calls per request
/// by endpoint, retries and own times.
/// docs/learn.md has the rules.
///
/// Exit status: 0 if a topology was learned, 2 if the input is unusable, 3 if Prometheus does not answer.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("telemetry").args(["prometheus", "kiali", "traces"]).multiple(true)))]
#[command(after_help = "\
Examples:
  meshmeter learn --prometheus http://127.0.0.1:9090 --out shop.yaml
  meshmeter learn --prometheus https://prometheus.example.com --prometheus-header 'Authorization: Bearer TOKEN' --out shop.yaml
  meshmeter learn --print-queries --range 1h
  meshmeter learn --prometheus answers.json --objects objects.json --out shop.yaml
  meshmeter learn --prometheus answers.json --traces spans.jsonl --out shop.yaml
  meshmeter learn --traces spans/ --sampling 10% --out shop.yaml
  meshmeter learn --kiali graph.json --out shop.yaml
  meshmeter learn --prometheus answers.json --anonymise --out shop.yaml
  meshmeter learn --explain web:cart shop.yaml")]
pub struct LearnArgs {
    /// Prometheus to query, by its URL, or a file with saved answers (--print-queries); several files may be given
    #[arg(long, value_name = "URL|FILE", value_hint = ValueHint::FilePath, required_unless_present_any = ["kiali", "traces", "print_queries", "explain"])]
    pub prometheus: Vec<String>,

    /// Graph of Kiali instead of a Prometheus: a file with the answer of /api/namespaces/graph
    #[arg(long, value_name = "FILE", conflicts_with = "prometheus", value_hint = ValueHint::FilePath)]
    pub kiali: Option<PathBuf>,

    /// Traces: a file with spans as JSON (OTLP, Jaeger's API or Zipkin v2), or a directory of such files; several may be given
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub traces: Vec<PathBuf>,

    /// Share of the requests that is traced, such as 10%: traces have no rates, and give them with it if there is no Prometheus
    #[arg(long, value_name = "FRACTION", requires = "traces", conflicts_with_all = ["prometheus", "kiali"], value_parser = parse_share)]
    pub sampling: Option<f64>,

    /// End of the period: RFC 3339 or seconds since 1970 [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub at: Option<String>,

    /// Length of the period
    #[arg(long, value_name = "D", default_value = "1h", value_parser = parse_range)]
    pub range: Duration,

    /// Add a header to queries, such as 'Authorization: Bearer TOKEN', or those in a file, one per line; may be given several
    /// times
    #[arg(long, value_name = "K: V|@FILE", requires = "prometheus", value_parser = parse_export_header)]
    pub prometheus_header: Vec<GivenHeaders>,

    /// Verify Prometheus against the CAs in this file, PEM [default: the system's]
    #[arg(long, value_name = "FILE", requires = "prometheus")]
    pub prometheus_cacert: Option<PathBuf>,

    /// Kubernetes objects for replicas, resources and HTTP/2: a file that `kubectl get deployments,statefulsets,daemonsets,services -A
    /// -o json` printed; may be given several times
    #[arg(long, value_name = "FILE", requires = "telemetry", value_hint = ValueHint::FilePath)]
    pub objects: Vec<PathBuf>,

    /// Print the queries and the commands that save their answers, and query nothing
    #[arg(long, conflicts_with_all = ["prometheus", "kiali", "traces", "explain"])]
    pub print_queries: bool,

    /// Write the topology to this file, and its provenance beside it [default: the topology to standard output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,

    /// Replace names of services, namespaces and hosts by salted hashes
    #[arg(long)]
    pub anonymise: bool,

    /// Salt of the hashes, from a file; the same salt gives the same names [default: random, kept in FILE.salt]
    #[arg(long, value_name = "@FILE", requires = "anonymise", value_parser = parse_salt)]
    pub salt: Option<PathBuf>,

    /// Scale rates and replicas, such as 0.02 or 2%
    #[arg(long, value_name = "FRACTION", default_value = "1", value_parser = parse_share)]
    pub scale: f64,

    /// Leave out calls with less than this fraction of their callee's requests
    #[arg(long, value_name = "FRACTION", default_value = "0", value_parser = parse_fraction)]
    pub least_share: f64,

    /// Print the sources of a call (`web:cart`), a service or a driver of a learned topology
    #[arg(long, value_name = "NAME", requires = "file", conflicts_with_all = ["prometheus", "kiali", "traces"])]
    pub explain: Option<String>,

    /// Learned topology, for --explain
    #[arg(value_name = "FILE", requires = "explain", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
}

impl LearnArgs {
    /// Certificate authorities for Prometheus.
    pub fn authorities(&self) -> Result<Authorities, String> {
        let Some(path) = &self.prometheus_cacert else { return Ok(Authorities::System) };
        read_authorities(path).map_err(|error| format!("--prometheus-cacert {}: {error}", path.display()))
    }
}

/// Provenance beside a topology file: `shop.provenance.json` beside `shop.yaml`.
pub fn provenance_path(topology: &Path) -> PathBuf {
    topology.with_extension("provenance.json")
}

/// A time as Prometheus reads it, in digits and letters alone: it becomes a part of a shell script.
fn parse_time(text: &str) -> Result<String, String> {
    if let Ok(timestamp) = text.parse::<jiff::Timestamp>() {
        return Ok(timestamp.to_string());
    }
    let is_number = text.chars().all(|c| c.is_ascii_digit() || c == '.') && text.parse::<f64>().is_ok();
    if is_number { Ok(text.to_owned()) } else { Err("expected RFC 3339 or seconds since 1970".to_owned()) }
}

fn parse_range(text: &str) -> Result<Duration, String> {
    let range = parse_duration(text).map_err(|error| error.to_string())?;
    if range.subsec_nanos() > 0 || range < Duration::from_secs(60) || range > MAX_RANGE {
        return Err("expected whole seconds, 1m to 31 days (744h)".to_owned());
    }
    Ok(range)
}

fn parse_share(text: &str) -> Result<f64, String> {
    let scale = parse_fraction(text).map_err(|error| error.to_string())?;
    if scale > 0.0 { Ok(scale) } else { Err("expected more than 0".to_owned()) }
}

/// A salt on the command line would be in the shell's history.
fn parse_salt(text: &str) -> Result<PathBuf, String> {
    text.strip_prefix('@').map(PathBuf::from).ok_or_else(|| "expected @FILE with the salt".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_that_prometheus_reads() {
        assert_eq!(parse_time("1800003600.5").as_deref(), Ok("1800003600.5"));
        assert_eq!(parse_time("2027-01-15T08:00:00+01:00").as_deref(), Ok("2027-01-15T07:00:00Z"));
        for text in ["$(reboot)", "now", "", ".", "1e3", "-1", "1;ls", "12 34"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_scales_and_salts_have_limits() {
        assert_eq!(parse_range("24h"), Ok(Duration::from_secs(86_400)));
        for text in ["30s", "1500ms", "800h", "1"] {
            assert!(parse_range(text).is_err(), "{text}");
        }
        assert_eq!(parse_share("2%"), Ok(0.02));
        assert!(parse_share("0").is_err() && parse_share("2").is_err());
        assert_eq!(parse_salt("@salt"), Ok(PathBuf::from("salt")));
        assert!(parse_salt("salt").is_err());
    }
}
