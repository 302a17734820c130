//! The programs that labs run: installed ones, and those that the user named.

use super::check::Check;
use crate::Result;
use components::{
    Component, Installed, Overrides, find, find_database, find_rate_limit_store, how_to_get, istio_files,
};
use experiment::environment::{EnvironmentError, error_chain};

const OF_ISTIO: [Component; 4] =
    [Component::Etcd, Component::ApiServer, Component::Istiod, Component::PilotAgent];

pub(super) fn checks(overrides: &Overrides) -> Vec<Check> {
    vec![
        envoy(overrides),
        istio(overrides),
        ztunnel(overrides),
        database(overrides),
        filter_services(overrides),
    ]
}

fn envoy(overrides: &Overrides) -> Check {
    match find(Component::Envoy, overrides) {
        Ok(envoy) => Check::ok("envoy", format!("{} at {}", envoy.version, envoy.path.display())),
        Err(error) => Check::missing("envoy", error_chain(&error), remedy(error, Component::Envoy)),
    }
}

/// The main use case does not need Istio, so its absence is only a warning.
fn istio(overrides: &Overrides) -> Check {
    let found: Result<Vec<Installed>> =
        OF_ISTIO.into_iter().map(|component| find(component, overrides)).collect();
    match found.and_then(|found| istio_files(overrides).map(|_| found)) {
        Ok(found) => {
            let versions = found.iter().map(|part| format!("{} {}", part.component, part.version));
            Check::ok("istio", versions.collect::<Vec<_>>().join(", "))
        }
        Err(error) => cannot_run("istio", "`mesh: istio`", error, Component::Istiod),
    }
}

fn ztunnel(overrides: &Overrides) -> Check {
    match find(Component::Ztunnel, overrides) {
        Ok(ztunnel) => Check::ok("ztunnel", format!("{} at {}", ztunnel.version, ztunnel.path.display())),
        Err(error) => cannot_run("ztunnel", "the ambient modes", error, Component::Ztunnel),
    }
}

fn database(overrides: &Overrides) -> Check {
    match find_database(overrides) {
        Ok(database) => {
            let Installed { component, version, path, .. } = database;
            Check::ok("database", format!("{component} {version} at {}", path.display()))
        }
        Err(error) => cannot_run("database", "topologies with a database", error, Component::FerretDb),
    }
}

/// Services behind the filters of a gateway, and the store for its rate limits.
fn filter_services(overrides: &Overrides) -> Check {
    let services =
        [Component::FilterServices, Component::RateLimit].map(|component| find(component, overrides));
    let found: Result<Vec<Installed>> =
        services.into_iter().chain([find_rate_limit_store(overrides)]).collect();
    match found {
        Ok(mut found) => {
            found.dedup();
            let versions = found.iter().map(|part| format!("{} {}", part.component, part.version));
            Check::ok("filters", versions.collect::<Vec<_>>().join(", "))
        }
        Err(error) => cannot_run("filters", "scenarios with filters", error, Component::FilterServices),
    }
}

fn cannot_run(name: &str, what: &str, error: EnvironmentError, component: Component) -> Check {
    Check::warn(name, format!("{what} cannot run: {}", error_chain(&error)), remedy(error, component))
}

fn remedy(error: EnvironmentError, component: Component) -> String {
    error.hint.unwrap_or_else(|| how_to_get(component))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn missing_named_program_is_reported_with_affected_modes() {
        let nowhere = |component: Component| (component, format!("/nowhere/{component}").into());
        let named = [
            Component::Envoy,
            Component::Istiod,
            Component::Ztunnel,
            Component::FerretDb,
            Component::FilterServices,
        ];
        let checks = checks(&named.map(nowhere).into_iter().collect());
        assert_eq!(
            checks.iter().map(|check| check.state).collect::<Vec<_>>(),
            [State::Missing, State::Warn, State::Warn, State::Warn, State::Warn]
        );
        assert!(checks[1].fact.starts_with("`mesh: istio` cannot run: use "), "{}", checks[1].fact);
        assert_eq!(
            checks[2].fact,
            "the ambient modes cannot run: use ztunnel at /nowhere/ztunnel: there is no such file"
        );
        assert!(checks.iter().all(|check| check.remedy.is_some()));
    }
}
