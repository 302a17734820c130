//! Confinement of programs of package registries and images, for each place that starts one.

use crate::container::{Confined, ContainerUser};
use components::Installed;
use confinement::Joinable;
use std::path::Path;

impl Confined {
    /// For a container that runs these programs; absent if the user named one of them. Such a program is the
    /// user's own: it may be a script that calls a debugger, or need libraries from anywhere.
    pub fn for_programs(programs: &[&Installed]) -> Option<Self> {
        if programs.iter().any(|program| program.is_users_own()) {
            return None;
        }
        Some(Self::default().reading(programs.iter().map(|program| program.path.as_path())))
    }

    pub(crate) fn reading<'a>(mut self, paths: impl IntoIterator<Item = &'a Path>) -> Self {
        self.view.readable.extend(paths.into_iter().map(Path::to_owned));
        self
    }

    pub(crate) fn writing(mut self, path: &Path) -> Self {
        self.view.writable.push(path.to_owned());
        self
    }

    pub(crate) fn joining(self, joinable: Joinable) -> Self {
        Self { joinable, ..self }
    }
}

/// User of a server that is confined or not.
pub(crate) fn server_user(confined: Option<&Confined>) -> ContainerUser {
    if confined.is_some() { ContainerUser::Server } else { ContainerUser::Lab }
}
