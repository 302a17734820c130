//! Options of `meshmeter doctor`.

use super::OverrideArgs;
use super::words::one_of;
use clap::Args;
use clap::builder::TypedValueParser;
use results::Mode;
use results::units::parse_duration;
use std::time::Duration;

/// Check what works on this machine, and measure its noise floor
///
/// --calibrate instead measures the smallest effect that this machine can resolve. It measures the same mode
/// against itself (none, a gateway, sidecars: those that can run here), and known effects (a server that
/// computes for 20, 50, 100 and 200 us per response) that must be found again. The output lists the
/// differences that a run can show for its repeats and window. The result is kept in the user's cache, and
/// runs of the next 30 days have it in host.json and in their report. Ctrl-C keeps the results so far.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meshmeter doctor
  meshmeter doctor --self-test
  meshmeter doctor --calibrate
  meshmeter doctor --calibrate --modes none,sidecar --repeats 20 --json")]
pub struct DoctorArgs {
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,

    /// Measure what this machine can resolve, in about four minutes
    #[arg(long)]
    pub calibrate: bool,

    /// Test the load generator against targets that follow a known law, and print true value, measured value and
    /// difference, in about a minute. Exit status 1 if a figure is wrong and no reason makes it unusable
    #[arg(long, conflicts_with = "calibrate")]
    pub self_test: bool,

    /// With --calibrate: measure everything this many times [default: 5]
    #[arg(long, value_name = "N", requires = "calibrate", value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub repeats: Option<u16>,

    /// With --calibrate: measured window of each trial [default: 2s]
    #[arg(long, value_name = "D", requires = "calibrate", value_parser = parse_measuring_time)]
    pub duration: Option<Duration>,

    /// With --calibrate: modes to calibrate [default: all that can run here]
    #[arg(long, value_name = "MODES", requires = "calibrate", value_delimiter = ',', value_parser = mode_parser())]
    pub modes: Vec<Mode>,

    /// Check only the inside of a lab; the doctor starts this as a child process
    #[arg(long, hide = true)]
    pub within_lab: bool,

    /// Programs to check instead of the installed ones.
    #[command(flatten)]
    pub overrides: OverrideArgs,
}

/// Modes of static Envoy, which need no control plane.
fn mode_parser() -> impl TypedValueParser<Value = Mode> {
    one_of([Mode::None, Mode::Gateway, Mode::Sidecar].map(|mode| (mode.name().into(), mode)))
}

/// Time for a measurement of this machine.
pub(super) fn parse_measuring_time(text: &str) -> Result<Duration, String> {
    let window = parse_duration(text).map_err(|error| error.to_string())?;
    let fits = (Duration::from_millis(100)..=Duration::from_secs(600)).contains(&window);
    if fits { Ok(window) } else { Err("expected 100ms to 10m".to_owned()) }
}
