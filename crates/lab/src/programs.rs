//! Programs of deployments, found once per choice of components.

use crate::Result;
use crate::istio::{AmbientPrograms, IstioPrograms};
use crate::once::once;
use components::{Component, Installed, Overrides, find, find_rate_limit_store};
use experiment::MeshKind;
use experiment::environment::{ComponentsSettings, DeploymentSpec};
use results::ComponentVersion;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

/// Programs of the deployments that share a choice of components. Each is looked up when it is first needed:
/// querying Envoy's version takes longer than creating a pod.
#[derive(Debug)]
pub(crate) struct ChosenPrograms {
    components: ComponentsSettings,
    overrides: Overrides,
    envoy: OnceCell<Installed>,
    istio: OnceCell<IstioPrograms>,
    ambient: OnceCell<AmbientPrograms>,
    recorded: RefCell<BTreeMap<Component, ComponentVersion>>,
}

impl ChosenPrograms {
    pub fn new(components: &ComponentsSettings, overrides: &Overrides) -> Result<Self> {
        Ok(Self {
            components: components.clone(),
            overrides: overrides.with_programs(components)?,
            envoy: OnceCell::new(),
            istio: OnceCell::new(),
            ambient: OnceCell::new(),
            recorded: RefCell::default(),
        })
    }

    pub fn are_for(&self, components: &ComponentsSettings) -> bool {
        self.components == *components
    }

    /// The Envoy of `mesh: envoy`.
    pub fn envoy(&self) -> Result<&Installed> {
        once(&self.envoy, || find(Component::Envoy, &self.overrides.without_release()))
    }

    pub fn istio(&self) -> Result<&IstioPrograms> {
        once(&self.istio, || IstioPrograms::find(&self.overrides))
    }

    pub fn ambient(&self) -> Result<&AmbientPrograms> {
        once(&self.ambient, || {
            Ok(AmbientPrograms {
                ztunnel: find(Component::Ztunnel, &self.overrides)?,
                ambient_iptables: find(Component::AmbientIptables, &self.overrides)?,
            })
        })
    }

    /// The Envoy found so far: Istio's if a mode of `mesh: istio` looked one up, else that of `mesh: envoy`.
    fn found_envoy(&self) -> Option<&Installed> {
        self.istio.get().map(|istio| &istio.envoy).or_else(|| self.envoy.get())
    }

    /// Versions of the programs found so far that this deployment uses. Without one, versions of all programs
    /// found so far, and always Envoy's if there is one.
    pub fn versions(&self, spec: Option<&DeploymentSpec>) -> Vec<ComponentVersion> {
        let envoy = match spec {
            Some(spec) => self.found_envoy().filter(|_| spec.parts().has_envoy()),
            None => self.found_envoy().or_else(|| self.envoy().ok()),
        };
        let istio = self.istio.get().filter(|_| spec.is_none_or(|spec| spec.mesh == MeshKind::Istio));
        let ambient = self.ambient.get().filter(|_| spec.is_none_or(|spec| spec.mode.is_ambient()));
        let programs = istio.into_iter().flat_map(IstioPrograms::control_plane_and_agent);
        let found = envoy.into_iter().chain(programs).chain(ambient.map(|ambient| &ambient.ztunnel));
        // Istio's files have a version if a release provides them.
        let files = istio.and_then(|istio| istio.files.recorded.clone());
        found.map(|installed| self.recorded(installed)).chain(files).collect()
    }

    /// The version as results record it. Hashing a user's own program takes a while, so it is done once.
    fn recorded(&self, installed: &Installed) -> ComponentVersion {
        let mut all = self.recorded.borrow_mut();
        all.entry(installed.component).or_insert_with(|| installed.recorded()).clone()
    }
}

/// Programs of the services behind filters.
#[derive(Clone, Debug)]
pub(crate) struct FilterPrograms {
    /// Program of the authorization and the firewall service.
    pub services: Installed,
    pub rate_limit: Installed,
    /// The store of the rate limit service: its own, or the user's Redis.
    pub store: Installed,
}

impl FilterPrograms {
    pub fn find(overrides: &Overrides) -> Result<Self> {
        Ok(Self {
            services: find(Component::FilterServices, overrides)?,
            rate_limit: find(Component::RateLimit, overrides)?,
            store: find_rate_limit_store(overrides)?,
        })
    }

    pub fn all(&self) -> impl Iterator<Item = &Installed> {
        let own_store = self.store.component == Component::RateLimit;
        [&self.services, &self.rate_limit].into_iter().chain((!own_store).then_some(&self.store))
    }
}
