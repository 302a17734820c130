//! Programs that replace the pinned ones, so that builds can be compared: the user's own, and a release's.
//!
//! An option names the user's own program for one command, a variable for all commands; the option takes
//! precedence. Such a program may have any version: the run records it.

use super::{Component, IstioVersion, Origin, ReleaseName};
use crate::Result;
use experiment::environment::{ComponentsSettings, EnvironmentError, ErrorContext as _};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// Programs that options name, and the version of Istio for everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    named: BTreeMap<Component, PathBuf>,
    istio: Option<IstioVersion>,
}

impl FromIterator<(Component, PathBuf)> for Overrides {
    fn from_iter<I: IntoIterator<Item = (Component, PathBuf)>>(named: I) -> Self {
        Self { named: named.into_iter().collect(), istio: None }
    }
}

pub fn variable(component: Component) -> Option<&'static str> {
    match component {
        Component::Envoy => Some("MESHMETER_ENVOY"),
        Component::Istiod => Some("MESHMETER_ISTIOD"),
        Component::PilotAgent => Some("MESHMETER_PILOT_AGENT"),
        Component::Ztunnel => Some("MESHMETER_ZTUNNEL"),
        Component::FerretDb => Some("MESHMETER_FERRETDB"),
        Component::Mongod => Some("MESHMETER_MONGOD"),
        Component::FilterServices => Some("MESHMETER_FILTER_SERVICES"),
        Component::RateLimit => Some("MESHMETER_RATELIMIT"),
        Component::RedisServer => Some("MESHMETER_REDIS_SERVER"),
        Component::Etcd | Component::ApiServer | Component::IstioFiles | Component::AmbientIptables => None,
    }
}

impl Overrides {
    /// These overrides with programs of this version of Istio.
    #[must_use]
    pub fn with_istio(mut self, version: IstioVersion) -> Self {
        self.istio = Some(version);
        self
    }

    /// These overrides with a program of the user's own.
    #[must_use]
    pub fn with(mut self, component: Component, path: PathBuf) -> Self {
        self.named.insert(component, path);
        self
    }

    /// These overrides with the pinned programs in place of a release's. For components that are not Istio's.
    #[must_use]
    pub fn without_release(&self) -> Self {
        self.clone().with_istio(IstioVersion::Pinned)
    }

    /// The release in use; absent if it is the pinned source.
    pub(super) fn release(&self, default: impl FnOnce() -> Option<ReleaseName>) -> Option<ReleaseName> {
        match &self.istio {
            Some(IstioVersion::Release(release)) => Some(release.clone()),
            Some(IstioVersion::Pinned) => None,
            None => default(),
        }
    }

    /// These overrides with what an experiment names. A component that an option names too is an error, since
    /// one of both would be ignored.
    pub fn with_programs(&self, components: &ComponentsSettings) -> Result<Self> {
        let mut overrides = self.clone();
        if let Some(version) = &components.istio {
            let version = version.parse().context("read components.istio")?;
            overrides.istio = Some(version);
        }
        for (name, path) in components.programs() {
            let component = Component::named(name).expect("keys of the section are names of components");
            if let Some(other) = overrides.named.insert(component, path.to_owned()) {
                let reason =
                    format!("`components.{name}` names {}, and --{name} {}", path.display(), other.display());
                return Err(EnvironmentError::new(format!("choose {name}"), reason)
                    .with_hint(format!("leave out --{name}, or name it with --set components.{name}")));
            }
        }
        Ok(overrides)
    }

    /// Equivalent options for a command that has no `--istio`.
    pub fn arguments(&self) -> Vec<OsString> {
        self.named
            .iter()
            .flat_map(|(component, path)| [format!("--{component}").into(), path.into()])
            .collect()
    }

    /// True if an option or a variable names a program for the component.
    #[must_use]
    pub fn overrides_component(&self, component: Component) -> bool {
        self.naming(component, &|name| std::env::var_os(name)).is_some()
    }

    /// `value_of` returns an environment variable.
    pub(super) fn naming(
        &self,
        component: Component,
        value_of: &dyn Fn(&str) -> Option<OsString>,
    ) -> Option<(PathBuf, Origin)> {
        if let Some(path) = self.named.get(&component) {
            return Some((path.clone(), Origin::Option));
        }
        let value = value_of(variable(component)?)?;
        (!value.is_empty()).then(|| (value.into(), Origin::Variable))
    }
}

pub fn how_to_get(component: Component) -> String {
    let install = match component {
        Component::Envoy => "`meshmeter lab install` fetches it",
        Component::Ztunnel => {
            return "`meshmeter lab install --istio VERSION` takes it out of a release's images, for runs with --istio VERSION; \
                    --ztunnel, MESHMETER_ZTUNNEL or PATH name one of your own"
                .to_owned();
        }
        Component::Mongod => {
            return "no package registry has mongod: name MongoDB's own with --mongod or MESHMETER_MONGOD; without it, \
                    FerretDB is the database"
                .to_owned();
        }
        Component::RedisServer => {
            return "name a Redis of your own (Debian: redis-server) with --redis-server or MESHMETER_REDIS_SERVER; without \
                    it, the rate limit service counts in a store of its own"
                .to_owned();
        }
        _ => "`meshmeter lab install` builds it",
    };
    variable(component).map_or_else(
        || install.to_owned(),
        |variable| format!("{install}; `--{component} PATH` or {variable} names one that you have"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_overrides_variable_and_empty_variable_is_ignored() {
        let named = Overrides::from_iter([(Component::Istiod, "/mine/istiod".into())]);
        let set = |name: &str| (name == "MESHMETER_ISTIOD").then(|| OsString::from("/other/istiod"));
        let istiod = Component::Istiod;
        assert_eq!(named.naming(istiod, &set), Some(("/mine/istiod".into(), Origin::Option)));
        assert_eq!(
            Overrides::default().naming(istiod, &set),
            Some(("/other/istiod".into(), Origin::Variable))
        );
        assert_eq!(Overrides::default().naming(istiod, &|_| Some(OsString::new())), None);
        assert_eq!(Overrides::default().naming(Component::Etcd, &|_| Some("/etcd".into())), None);
    }

    #[test]
    fn overrides_can_be_passed_to_child() {
        let named = [(Component::Envoy, "/e".into()), (Component::PilotAgent, "/p".into())];
        let named = Overrides::from_iter(named);
        assert_eq!(named.arguments(), ["--envoy", "/e", "--pilot-agent", "/p"]);
    }
}
