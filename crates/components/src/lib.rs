//! The real components that a lab runs: their location, versions, and installation.
//!
//! Read `catalog.rs` for the list, and [`find`] for how a component is looked up. The one that the user named
//! by an option or a variable ([`Overrides`]) comes first, then that of the Istio release in use
//! (`release.rs`), then the pinned one. The latter two are in the components directory
//! (`MESHMETER_COMPONENTS`, else `$XDG_CACHE_HOME/meshmeter/components`, else
//! `~/.cache/meshmeter/components`), which [`install`] fills. `package.rs` defines how each is made, and
//! `hub.rs` extracts files from images. Only ztunnel, which is not built here, is also looked up in `PATH`: a
//! program of unknown origin must not slip into a measurement.
//!
//! `supervised_command.rs` and `subprocess.rs` run commands with a timeout, [`process_table`] reads `/proc`.
//! Not included: namespaces, and the choice of programs for a deployment.

// No field here is part of a contract; a doc comment that repeats the name would only add noise.
#![allow(missing_docs)]

mod catalog;
mod find;
mod go_program;
mod go_toolchain;
mod hub;
mod install;
mod install_dir;
mod installed;
mod istio_files;
mod istio_version;
mod known_releases;
mod kubernetes_images;
mod manifest;
mod overrides;
mod package;
pub mod process_end;
pub mod process_table;
mod release;
mod release_source;
mod status;
mod subprocess;
mod supervised_command;
#[cfg(test)]
mod testing;
mod version;
mod wheel;

pub use catalog::{Component, ENVOY_VERSION};
pub use find::{check_options, find, find_database, find_rate_limit_store, istio_files};
pub use hub::{DEFAULT_HUB, HUB_VARIABLE, Hub};
pub use install::{
    InstallNews, InstallObserver, InstallRequest, Installation, install, installable, remove_release,
    set_default_istio,
};
pub use install_dir::{FOLDER_VARIABLE, folder, user_cache};
pub use installed::{Installed, Origin};
pub use istio_files::IstioFiles;
pub use istio_version::{BadVersion, IstioVersion, ReleaseName};
pub use known_releases::{DefaultIstio, default_istio};
pub use kubernetes_images::KUBERNETES_HUB;
pub use manifest::Lack;
pub use manifest::sha256_of_texts;
pub use overrides::{Overrides, how_to_get, variable};
pub use package::Package;
pub use release::{installed_releases, is_installed};
pub use release_source::ReleaseRequest;
pub use status::{ComponentState, ComponentStatus, status};
pub use subprocess::{answer_within, confined_answer_within, output_within};
pub use supervised_command::end_with_parent;

pub(crate) type Result<T, E = experiment::environment::EnvironmentError> = std::result::Result<T, E>;
