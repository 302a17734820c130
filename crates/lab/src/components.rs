//! The real components that the lab runs: where they are, which versions, and how they get there.
//!
//! Read `catalog.rs` for what there is, and [`find`] for how a component is looked for: one that the user named by an
//! option or a variable ([`Overrides`]), else the installed one in the components folder (`MESHMETER_COMPONENTS`, else
//! `$XDG_CACHE_HOME/meshmeter/components`, else `~/.cache/meshmeter/components`), which [`install`] fills. Only ztunnel,
//! which cannot be installed, is looked for in `PATH` too: a program of unknown make shall not slip into a measurement.

mod catalog;
mod envoy_build;
mod find;
mod go_program;
mod go_toolchain;
mod install;
mod istio_files;
mod long_command;
mod overrides;
mod place;
mod record;
mod status;
mod subprocess;
#[cfg(test)]
mod testing;
mod version;
mod way;
mod wheel;

pub use catalog::{Component, ENVOY_VERSION};
pub use envoy_build::has_istio_extensions;
pub use find::{Installed, IstioFiles, Origin, check_options, find, how_to_get, istio_files};
pub use install::{InstallNews, InstallObserver, Installation, install, installable};
pub use overrides::{Overrides, variable};
pub use status::{ComponentState, ComponentStatus, status};
pub(crate) use subprocess::{answer_within, output_within};

use experiment::environment::EnvironmentError;
use std::ffi::OsString;
use std::path::PathBuf;

/// Names the folder for components instead of the one in the user's cache.
pub const FOLDER_VARIABLE: &str = "MESHMETER_COMPONENTS";

/// The folder for components, as the environment variables say.
///
/// # Errors
/// Where none of the variables that could name it is set.
pub fn folder() -> Result<PathBuf, EnvironmentError> {
    folder_from(&|name| std::env::var_os(name))
}

fn folder_from(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, EnvironmentError> {
    let set = |name: &str| non_empty(variable(name));
    set(FOLDER_VARIABLE)
        // The XDG specification says of relative paths that they are to be ignored.
        .or_else(|| {
            let cache = set("XDG_CACHE_HOME").filter(|cache| cache.is_absolute())?;
            Some(cache.join("meshmeter/components"))
        })
        .or_else(|| set("HOME").map(|home| home.join(".cache/meshmeter/components")))
        .ok_or_else(|| {
            EnvironmentError::new("find the folder for components", "HOME is not set")
                .with_hint(format!("set {FOLDER_VARIABLE} to a folder"))
        })
}

fn non_empty(value: Option<OsString>) -> Option<PathBuf> {
    value.filter(|value| !value.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn folder_with(variables: &[(&str, &str)]) -> Result<PathBuf, EnvironmentError> {
        folder_from(&|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_folder_is_the_nearest_that_is_named() {
        let all = [("MESHMETER_COMPONENTS", "/c"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(folder_with(&all).unwrap(), Path::new("/c"));
        assert_eq!(folder_with(&all[1..]).unwrap(), Path::new("/x/meshmeter/components"));
        assert_eq!(folder_with(&all[2..]).unwrap(), Path::new("/h/.cache/meshmeter/components"));
        let relative = [("XDG_CACHE_HOME", "x"), ("HOME", "/h")];
        assert_eq!(folder_with(&relative).unwrap(), Path::new("/h/.cache/meshmeter/components"));
        let empty = [("MESHMETER_COMPONENTS", ""), ("HOME", "/h")];
        assert_eq!(folder_with(&empty).unwrap(), Path::new("/h/.cache/meshmeter/components"));
    }

    #[test]
    fn no_folder_is_an_error_with_a_hint() {
        let error = folder_with(&[]).unwrap_err();
        assert!(error.hint.unwrap().contains("MESHMETER_COMPONENTS"));
    }
}
