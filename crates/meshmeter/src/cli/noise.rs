//! The option that accepts noise of the machine.

use clap::Args;

/// Options on noise of the machine.
#[derive(Debug, Args)]
pub struct NoiseArgs {
    /// Accept noise of the machine: estimates, intervals and findings are also drawn from trials that it disturbed
    ///
    /// Noise is other programs or the hypervisor taking CPU, and a generator that was late although CPU was free. A disturbed
    /// figure is used where its repeat has no other one, and every output says so in its first lines. Nothing else is accepted:
    /// saturation, errors, throttling, a path that is not proven and an interrupted trial exclude figures as ever.
    #[arg(long)]
    pub accept_noise: bool,
}
