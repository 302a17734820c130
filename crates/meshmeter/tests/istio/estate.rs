//! Domains behind a gateway: which ones are served, through which objects, and with which TLS.

use crate::cases::LogFolder;
use crate::trial::{CONNECTIONS, REQUESTS, Trial, bring_up, end, load, load_refused, settings, spec, trial};
use experiment::environment::{DeploymentSpec, Estate, Scenario};
use experiment::mesh_settings::{IngressApi, IngressSettings};
use experiment::{MeshKind, MeshSettings};
use lab::environment::LocalLab;
use results::Mode;
use std::sync::Arc;

/// More paths than fit into one rule of the Gateway API.
const PATHS: usize = 70;
const LISTENER: &str = "listener.0.0.0.0_8443.ssl";

fn estate(scenario: Scenario) -> Arc<Estate> {
    let estate = Estate { domains: 3, credentials: Some(2), ..Estate::default() };
    Arc::new(Estate { declared: true, paths: Some(PATHS), requested_paths: Some(PATHS), scenario, ..estate })
}

fn domains(api: IngressApi, scenario: Scenario) -> DeploymentSpec {
    let ingress = IngressSettings { api, ..IngressSettings::default() };
    let istio = MeshSettings { ingress, ..settings() };
    DeploymentSpec { istio: Arc::new(istio), ingress: estate(scenario), ..spec(Mode::Ingress) }
}

fn static_domains(scenario: Scenario) -> DeploymentSpec {
    DeploymentSpec { ingress: estate(scenario), ..DeploymentSpec::new(MeshKind::Envoy, Mode::Gateway) }
}

pub fn istios_api_describes_domains_and_nothing_else_is_served(lab: &LocalLab) {
    let inside = check_what_is_served(lab, &domains(IngressApi::Istio, Scenario::NoFilters));
    check_configured(&inside);
}

pub fn the_gateway_api_describes_domains_and_nothing_else_is_served(lab: &LocalLab) {
    let inside = check_what_is_served(lab, &domains(IngressApi::Kubernetes, Scenario::NoFilters));
    check_configured(&inside);
}

pub fn static_files_describe_domains_and_nothing_else_is_served(lab: &LocalLab) {
    let inside = check_what_is_served(lab, &static_domains(Scenario::NoFilters));
    assert_eq!(inside.observation.evidence.further_domain, None);
    let path = &inside.observation.evidence.path;
    assert_eq!(path.proxies.iter().map(|proxy| proxy.name.as_str()).collect::<Vec<_>>(), ["gateway"]);
}

fn check_configured(trial: &Trial) {
    trial.check_proven("domains", &["ingress-gateway", "server-proxy"]);
    let evidence = &trial.observation.evidence;
    let further = evidence.further_domain.as_ref().expect("a further domain was written");
    assert_eq!(further.failure, None);
    assert_eq!((further.gateway.as_str(), further.name.as_str()), ("ingress-gateway", "d4.shop.example"));
    assert!(further.in_force_s.is_some_and(|seconds| seconds > 0.0), "{further:?}");
    let mut components = trial.observation.usage.components.iter();
    let gateway = components.find(|component| component.name == "ingress-gateway").expect("it was watched");
    let holdings = gateway.holdings.as_ref().expect("it is a proxy");
    let configuration = holdings.configuration.as_ref().expect("it was read");
    assert!(configuration.counts.routes >= Some(3 * PATHS as u64), "{configuration:?}");
}

/// Requests all domains and paths, and then others. Returns the trial of all domains.
fn check_what_is_served(lab: &LocalLab, spec: &DeploymentSpec) -> Trial {
    let logs = LogFolder::create();
    let mut deployment = bring_up(lab, spec, logs.path());
    let (url, arguments) = (deployment.url(), deployment.client_arguments());
    assert_eq!(url, format!("https://d{{1..3}}.shop.example:8443/get/{{1..{PATHS}}}"));
    let inside = load(&mut deployment, logs.path(), url, &arguments);
    let inside = end(&mut deployment, inside);
    inside.check_path("domains");

    let beyond = format!("https://d2.shop.example:8443/get/{}", PATHS + 1);
    let beyond = load(&mut deployment, logs.path(), beyond, &arguments);
    let beyond = end(&mut deployment, beyond);
    assert_eq!((beyond.answered(), beyond.responses("404")), (0, REQUESTS), "a path outside");

    let other_host = [&arguments[..], &["--header=host: elsewhere.shop.example".to_owned()]].concat();
    let url = "https://d2.shop.example:8443/get/1".to_owned();
    let other_host = load(&mut deployment, logs.path(), url, &other_host);
    let other_host = end(&mut deployment, other_host);
    assert_eq!((other_host.answered(), other_host.responses("404")), (0, REQUESTS), "another host");

    let no_route = "https://elsewhere.shop.example:8443/get/1".to_owned();
    let no_route = load_refused(&mut deployment, logs.path(), no_route, &arguments);
    let no_route = end(&mut deployment, no_route);
    assert_eq!(no_route.completed(), 0, "a name that no filter chain is for");
    inside
}

pub fn tls_matches_the_scenario(lab: &LocalLab) {
    let scenarios =
        [Scenario::Tls12, Scenario::Rsa, Scenario::MutualTls, Scenario::FullHandshakes, Scenario::Resumption];
    for spec in scenarios
        .into_iter()
        .flat_map(|scenario| [domains(IngressApi::Istio, scenario), static_domains(scenario)])
    {
        let scenario = spec.ingress.scenario;
        let gateway = if spec.mesh == MeshKind::Istio { "ingress-gateway" } else { "gateway" };
        let what = format!("{} {}", spec.mesh, scenario.name());
        let trial = trial(lab, &spec, |_| ());
        trial.check_path(&what);
        let rose = |counter: &str| trial.rise(gateway, &format!("{LISTENER}.{counter}"));
        let per_request = matches!(scenario, Scenario::FullHandshakes | Scenario::Resumption);
        let result = trial.result();
        // A busy machine may leave some requests unsent.
        assert!(result.requests.completed > REQUESTS / 2, "{what}: {:?}", result.requests);
        // The last connections may be opened for requests that are no longer due.
        let least = if per_request { result.requests.completed } else { CONNECTIONS };
        assert!((least..=least + CONNECTIONS).contains(&rose("handshake")), "{what}: {}", rose("handshake"));
        let sessions = |of: &str| -> u64 {
            let found = result.tls_sessions.iter().filter(|(name, _)| name.contains(of));
            found.map(|(_, count)| count).sum()
        };
        let (all, resumed) = (sessions(""), sessions("resumed"));
        let version = if scenario == Scenario::Tls12 { "TLSv1_2" } else { "TLSv1_3" };
        assert_eq!(sessions(version), all, "{what}: {:?}", result.tls_sessions);
        let key = if scenario == Scenario::Rsa { "RSA 2048" } else { "ECDSA P-256" };
        assert_eq!(result.tls_server_keys, [(key.to_owned(), all)].into(), "{what}");
        match scenario {
            Scenario::MutualTls => assert_eq!(rose("no_certificate"), 0, "{what}"),
            Scenario::Resumption => {
                let at_gateway = rose("session_reused");
                // A client has its session before the gateway counts it, and the last ones are closed
                // immediately.
                assert!(
                    resumed >= all - CONNECTIONS && at_gateway + CONNECTIONS >= resumed,
                    "{what}: {resumed} of {all}, {at_gateway} at the gateway"
                );
            }
            _ => assert_eq!(resumed, 0, "{what}"),
        }
    }
}

pub fn the_direct_scenario_has_no_gateway(lab: &LocalLab) {
    for spec in [domains(IngressApi::Istio, Scenario::Direct), static_domains(Scenario::Direct)] {
        let trial = trial(lab, &spec, |_| ());
        trial.check_path("direct");
        assert_eq!(trial.components(), ["generator", "server"], "{}", spec.mesh);
    }
}
