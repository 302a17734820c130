//! The programs that labs run: installed ones, and those that the user named.

use super::check::Check;
use components::{
    Component, Installed, Overrides, find, find_database, find_rate_limit_store, how_to_get, istio_files,
};
use experiment::environment::{EnvironmentError, error_chain};

const OF_ISTIO: [Component; 4] =
    [Component::Etcd, Component::ApiServer, Component::Istiod, Component::PilotAgent];

type Found = Result<Vec<Installed>, EnvironmentError>;

pub(super) fn checks(overrides: &Overrides) -> Vec<Check> {
    let find = |component| find(component, overrides);
    let envoy = match find(Component::Envoy) {
        Ok(envoy) => Check::ok("envoy", location(&envoy)),
        Err(error) => Check::missing("envoy", error_chain(&error), remedy(error, Component::Envoy)),
    };
    let istio: Found = OF_ISTIO.into_iter().map(find).collect();
    let istio = istio.and_then(|found| istio_files(overrides).map(|_| found));
    let ztunnel = find(Component::Ztunnel).map(|ztunnel| location(&ztunnel));
    let database = find_database(overrides);
    let database = database.map(|database| format!("{} {}", database.component, location(&database)));
    // Services behind the filters of a gateway, and the store for its rate limits.
    let services = [Component::FilterServices, Component::RateLimit].map(find);
    let services: Found = services.into_iter().chain([find_rate_limit_store(overrides)]).collect();
    let services = services.map(|mut found| {
        found.dedup();
        versions(&found)
    });
    // The main use case needs none of these, so their absence is only a warning.
    let further = [
        ("istio", istio.map(|found| versions(&found)), "`mesh: istio`", Component::Istiod),
        ("ztunnel", ztunnel, "the ambient modes", Component::Ztunnel),
        ("database", database, "topologies with a database", Component::FerretDb),
        ("filters", services, "scenarios with filters", Component::FilterServices),
    ];
    let further = further.map(|(name, found, what, component)| match found {
        Ok(fact) => Check::ok(name, fact),
        Err(error) => {
            let fact = format!("{what} cannot run: {}", error_chain(&error));
            Check::warn(name, fact, remedy(error, component))
        }
    });
    std::iter::once(envoy).chain(further).collect()
}

fn location(program: &Installed) -> String {
    format!("{} at {}", program.version, program.path.display())
}

fn versions(programs: &[Installed]) -> String {
    let versions = programs.iter().map(|program| format!("{} {}", program.component, program.version));
    versions.collect::<Vec<_>>().join(", ")
}

fn remedy(error: EnvironmentError, component: Component) -> String {
    error.hint.unwrap_or_else(|| how_to_get(component))
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

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
