//! Options of the trials of a run or of a comparison.

use super::doctor::parse_measuring_time;
use clap::Args;
use std::time::Duration;

/// Settings of trials, and of the machine before them.
#[derive(Debug, Args)]
pub struct TrialArgs {
    /// Rerun each trial that the machine disturbed, at most this many times, after the others of its repeat
    ///
    /// A trial counts as disturbed if only other processes or the generator's own lateness make its figures
    /// unusable. Effects of the mesh (saturation, errors, a path that is not proven, a component that dies)
    /// are never a reason for a rerun. At most a third of the trials are rerun; every take is kept and shown.
    #[arg(long, value_name = "N")]
    pub retakes: Option<String>,

    /// Measured window of each trial, such as 20s
    #[arg(long, value_name = "D")]
    pub duration: Option<String>,

    /// How the generators of all trials wait until a request is due: `economical` sleeps, `precise` spins
    /// [default: chosen before the first trial, by the CPUs that the heaviest mode leaves free]
    #[arg(long, value_name = "PACING")]
    pub pacing: Option<String>,

    /// Time to measure this machine's noise floor, before the first trial [default: 2.5s]. A longer one finds
    /// rarer pauses of the CPUs
    #[arg(long, value_name = "D", value_parser = parse_measuring_time)]
    pub noise_floor: Option<Duration>,

    /// First calibrate this machine, as `meshmeter doctor --calibrate` does, in about four minutes
    #[arg(long)]
    pub calibrate: bool,

    /// Multiply every rate (or number of clients) by this; for a fleet its proxies and the objects of its
    /// mesh
    #[arg(long, value_name = "F")]
    pub scale: Option<String>,

    /// Override a key of the experiment, such as load.connections=16, or [4,16] for a factor; may be given
    /// several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Sample the stacks of every component in the windows, with perf, and draw flame graphs in the report: in a comparison
    /// with the change of each function. The figures of these trials carry the cost of sampling
    #[arg(long)]
    pub profile: bool,

    /// Seed for the order of trials, which every run records
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}
