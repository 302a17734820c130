//! Extracts single files from container images and Helm charts, directly from a registry: the pull side of
//! the OCI distribution protocol. Only the wanted files are unpacked, and no image is kept.
//!
//! [`extract`] is the entry point. Layers are streamed from the top down, so that whiteouts and replaced
//! files are honoured and base layers are rarely read. A file gets its name in the destination only once
//! everything that was read has the digest given in the manifest.

mod access;
mod blob;
mod credentials;
mod decompress;
mod digest;
mod docker_config;
mod error;
mod extract;
mod layer;
mod manifest;
mod reference;
mod session;
mod spool;
mod view;

pub use access::{Access, Limits, Platform, Watch};
pub use decompress::check_compressed;
pub use docker_config::check_docker_config;
pub use error::ImageError;
pub use extract::{Extracted, ExtractedFile, Wanted, digest, extract};
pub use layer::check_archive;
pub use manifest::check_manifest;
pub use reference::{ImageReference, InvalidReference};
pub use session::check_challenge;
