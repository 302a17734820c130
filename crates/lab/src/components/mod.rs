//! The real components that the lab runs: where they are, which versions, and how they get there.
//! Read `catalog.rs` for what there is, and [`find`] for how a component is looked for: one that the user named by an
//! option or a variable ([`Overrides`]), else the installed one in the components folder (`MESHMETER_COMPONENTS`, else
//! `$XDG_CACHE_HOME/meshmeter/components`, else `~/.cache/meshmeter/components`), which [`install`] fills. Only ztunnel,
//! which cannot be installed, is looked for in `PATH` too: a program of unknown make shall not slip into a measurement.

mod catalog;
mod find;
mod go_program;
mod go_toolchain;
mod install;
mod install_dir;
mod install_method;
mod installed;
mod istio_files;
mod istio_version;
mod manifest;
mod overrides;
mod release;
mod status;
mod subprocess;
mod supervised_command;
#[cfg(test)]
mod testing;
mod version;
mod wheel;

pub use catalog::{Component, ENVOY_VERSION};
pub use find::{check_options, find, find_database, find_rate_limit_store, istio_files};
pub use install::{InstallNews, InstallObserver, Installation, install, installable};
pub use install_dir::{FOLDER_VARIABLE, folder, user_cache};
pub use installed::{Installed, Origin};
pub use istio_files::IstioFiles;
pub use istio_version::{BadVersion, IstioVersion, ReleaseName};
pub use manifest::Lack;
pub(crate) use manifest::sha256_of_texts;
pub use overrides::{Overrides, how_to_get, variable};
pub use release::{installed_releases, is_installed};
pub use status::{ComponentState, ComponentStatus, status};
pub(crate) use subprocess::{answer_within, output_within};
