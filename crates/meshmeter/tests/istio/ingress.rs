//! The ingress gateway.

use crate::cases::LogFolder;
use crate::trial::{CONNECTIONS, REQUESTS, bring_up, run, settings, spec, trial};
use experiment::MeshSettings;
use experiment::environment::{DeploymentSpec, MutualTls, ProxySettings};
use experiment::mesh_settings::{IngressApi, IngressSettings, IngressTls};
use lab::environment::LocalLab;
use results::Mode;
use std::sync::Arc;

const LISTENER: &str = "listener.0.0.0.0_8443.ssl";

/// An ingress gateway with these settings.
pub fn ingress(tls: IngressTls, api: IngressApi) -> DeploymentSpec {
    let istio = MeshSettings { ingress: IngressSettings { tls, api }, ..settings() };
    DeploymentSpec { istio: Arc::new(istio), ..spec(Mode::Ingress) }
}

pub fn ingress_proves_tls_on_both_sides(lab: &LocalLab) {
    for api in [IngressApi::Istio, IngressApi::Kubernetes] {
        for tls in [IngressTls::Simple, IngressTls::Mutual] {
            let what = format!("{api:?} {tls:?}");
            let trial = trial(lab, &ingress(tls, api), |_| ());
            trial.check_proven(&what, &["ingress-gateway", "server-proxy"]);
            assert_eq!(
                trial.components(),
                ["generator", "ingress-gateway", "server-proxy", "server"],
                "{what}"
            );
            for name in ["ingress-gateway", "server-proxy"] {
                let proxy = trial.proxy(name);
                assert_eq!(proxy.requests_received, REQUESTS, "{what}: {name}");
                assert!(proxy.tls_expected && proxy.tls_handshakes > 0, "{what}: {proxy:?}");
            }
            let counters = &trial.proxy("ingress-gateway").counters;
            let rose = |counter: &str| counters.get(&format!("{LISTENER}.{counter}")).copied().unwrap_or(0);
            let without_certificate = if tls == IngressTls::Simple { CONNECTIONS } else { 0 };
            assert_eq!(
                (rose("handshake"), rose("no_certificate")),
                (CONNECTIONS, without_certificate),
                "{what}"
            );
        }
    }
}

pub fn ingress_without_tls_has_no_handshakes(lab: &LocalLab) {
    let proxy = ProxySettings { mtls: MutualTls::Off, ..ProxySettings::default() };
    let spec = DeploymentSpec { proxy, ..ingress(IngressTls::Off, IngressApi::Istio) };
    let trial = trial(lab, &spec, |deployment| {
        assert!(deployment.url().starts_with("http://") && deployment.client_arguments().is_empty());
    });
    trial.check_proven("no TLS", &["ingress-gateway", "server-proxy"]);
    assert!(trial.observation.evidence.path.proxies.iter().all(|proxy| proxy.tls_handshakes == 0));
}

pub fn ingress_refuses_clients_without_certificate(lab: &LocalLab) {
    let logs = LogFolder::create();
    let deployment = bring_up(lab, &ingress(IngressTls::Mutual, IngressApi::Istio), logs.path());
    let trusting: Vec<String> = deployment
        .client_arguments()
        .into_iter()
        .filter(|argument| argument.starts_with("--cacert"))
        .collect();
    let trial = run(deployment, logs.path(), &trusting);
    assert_eq!(trial.answered(), 0);
    assert!(!trial.observation.evidence.path.proven);
}
