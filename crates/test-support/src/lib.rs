//! Shared by the tests of several crates. [`Registry`] is a real server (Debian's `docker-registry`) with or without TLS and
//! credentials; [`HostileRegistry`] misbehaves in ways that no real one would. [`ImageBuilder`], [`Index`]
//! and [`Chart`] build their content. [`proxy_wasm`] makes WebAssembly modules for proxies, [`program`] makes a program of a shell script, and
//! [`intruder`] is what a hostile one does.
//!
//! Failures panic: this crate is only for tests.

mod hostile;
mod image;
pub mod intruder;
mod layer;
mod program;
pub mod proxy_wasm;
mod registry;
mod server;
mod tls;
mod token;

pub use hostile::{Behaviour, HostileRegistry};
pub use image::{Artifact, Chart, Content, ImageBuilder, Index, MediaTypes};
pub use layer::{Compression, LayerBuilder};
pub use program::program;
pub use registry::{PASSWORD, Registry, RegistryOptions, USER};
pub use server::{Body, Request, Response, Server};
