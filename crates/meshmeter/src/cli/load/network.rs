//! Options of `meshmeter load` for kernel I/O.

use clap::{Args, ValueEnum};
use load::IoBackendChoice;

/// Options for kernel I/O.
#[derive(Debug, Args)]
pub struct NetworkArgs {
    /// Kernel I/O interface; the result names the one that was used
    #[arg(long, value_enum, default_value_t, value_name = "INTERFACE", help_heading = "Generator")]
    pub network: NetworkName,
}

/// Kernel I/O interfaces.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum NetworkName {
    /// In a closed loop io_uring if the kernel allows it, otherwise epoll
    #[default]
    Auto,
    /// One system call for many requests; needs Linux 6.1, and is often forbidden in containers
    #[value(name = "io_uring", alias = "io-uring")]
    IoUring,
    /// Works everywhere
    Epoll,
}

impl From<NetworkName> for IoBackendChoice {
    fn from(name: NetworkName) -> Self {
        match name {
            NetworkName::Auto => Self::Auto,
            NetworkName::IoUring => Self::IoUring,
            NetworkName::Epoll => Self::Epoll,
        }
    }
}
