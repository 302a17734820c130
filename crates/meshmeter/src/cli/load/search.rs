//! Options of `meshmeter load --search`.

use super::parse_run_duration;
use super::schedule::parse_positive_rate;
use clap::Args;
use results::units::parse_fraction;
use std::time::Duration;

/// Minimum and maximum precision, as fractions.
const PRECISIONS: (f64, f64) = (0.002, 0.5);

/// Options for the search.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search")]
pub struct SearchArgs {
    /// Find the highest rate that holds the --objective: probes at rising rates until one fails, then between
    /// those that held and those that failed, then confirming runs, then the curve of latency against rate.
    /// --duration is the minimum duration of a probe [default: 5s]; it lasts longer if the objective needs
    /// more requests. Each probe has its own --warmup [default: 500ms]
    #[arg(long, requires = "objective",
          conflicts_with_all = ["requests", "think_time", "start_at", "csv", "hdr", "percentiles", "fortio", "series_histograms", "per_url",
                                "remote_write", "otlp"])]
    pub search: bool,

    /// Minimum rate
    #[arg(long, value_name = "R", default_value = "10", value_parser = parse_positive_rate)]
    pub search_min: f64,

    /// Maximum rate. Without it the search begins with a closed loop for two seconds, which loads the target
    /// with all that the connections can carry
    #[arg(long, value_name = "R", value_parser = parse_positive_rate)]
    pub search_max: Option<f64>,

    /// Relative precision of the rate that is found
    #[arg(long, value_name = "FRACTION", default_value = "2%", value_parser = parse_precision)]
    pub search_precision: f64,

    /// Maximum number of probes between the first failure and the confirmation
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(4..=200))]
    pub search_probes: u32,

    /// Confirming runs, twice as long as a probe, that must hold at the rate found
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub search_confirmations: u32,

    /// Maximum duration of a probe, whatever the objective needs
    #[arg(long, value_name = "D", default_value = "60s", value_parser = parse_run_duration)]
    pub search_probe_max: Duration,
}

fn parse_precision(text: &str) -> Result<f64, String> {
    let precision = parse_fraction(text).map_err(|error| error.to_string())?;
    let (least, most) = PRECISIONS;
    if (least..=most).contains(&precision) {
        Ok(precision)
    } else {
        Err("a precision lies between 0.2% and 50%".to_owned())
    }
}
