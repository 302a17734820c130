//! What the generator's connections stand on.

use clap::{Args, ValueEnum};
use load::NetworkChoice;

/// See the module.
#[derive(Debug, Args)]
pub struct NetworkArgs {
    /// Interface of the kernel that the generator's connections stand on; the result says which one it was
    #[arg(long, value_enum, default_value_t, value_name = "INTERFACE", help_heading = "Generator")]
    pub network: NetworkName,
}

/// See [`NetworkArgs`].
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum NetworkName {
    /// In a closed loop io_uring where the kernel allows it, else epoll
    #[default]
    Auto,
    /// One system call for many requests; needs Linux 6.1, and containers often forbid it
    #[value(name = "io_uring", alias = "io-uring")]
    IoUring,
    /// Works everywhere
    Epoll,
}

impl From<NetworkName> for NetworkChoice {
    fn from(name: NetworkName) -> Self {
        match name {
            NetworkName::Auto => Self::Auto,
            NetworkName::IoUring => Self::IoUring,
            NetworkName::Epoll => Self::Epoll,
        }
    }
}
