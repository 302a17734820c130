//! Options of `meshmeter load` for kernel I/O.

use crate::cli::words::{one_of, word};
use clap::Args;
use clap::builder::TypedValueParser;
use load::IoBackendChoice;

/// Options for kernel I/O.
#[derive(Debug, Args)]
pub struct NetworkArgs {
    /// Kernel I/O interface; the result names the one that was used
    #[arg(long, default_value = "auto", value_name = "INTERFACE", value_parser = network_parser(), help_heading = "Generator")]
    pub network: IoBackendChoice,
}

fn network_parser() -> impl TypedValueParser<Value = IoBackendChoice> {
    let io_uring = "One system call for many requests; needs Linux 6.1, and is often forbidden in containers";
    one_of([
        (
            word("auto", "In a closed loop io_uring if the kernel allows it, otherwise epoll"),
            IoBackendChoice::Auto,
        ),
        (word("io_uring", io_uring).alias("io-uring"), IoBackendChoice::IoUring),
        (word("epoll", "Works everywhere"), IoBackendChoice::Epoll),
    ])
}
