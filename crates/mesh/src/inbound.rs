//! Acceptance of plaintext by proxies for the services behind them, from the configuration that they show,
//! compared with the experiment's setting.

use crate::admin::{Admin, AdminError};
use crate::envoy::plaintext::Listeners;
use crate::proof::Accepts;
use crate::ztunnel::plaintext::Enforced;
use results::PathProof;

/// Configuration of a proxy that decides what it accepts.
#[derive(Debug)]
pub enum Inbound {
    Sidecar(Listeners),
    /// A ztunnel decides for each of its pods.
    Ztunnel(Enforced),
}

/// Claim about a proxy for one service.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    pub service: &'a str,
    pub accepts: Accepts,
    /// Namespaces and names of its pods behind the proxy.
    pub pods: Vec<(&'a str, &'a str)>,
}

impl Inbound {
    pub fn of_sidecar(envoy: &Admin) -> Result<Self, AdminError> {
        Listeners::read(envoy).map(Self::Sidecar)
    }

    pub fn of_ztunnel(ztunnel: &Admin) -> Result<Self, AdminError> {
        ztunnel.ask_long_json("/config_dump").map(Self::Ztunnel)
    }

    /// True if plaintext is accepted, per pod of the service or for all of them; absent if that is not shown.
    fn accepts_plaintext(&self, Claim { accepts, pods, .. }: &Claim<'_>) -> Vec<Option<bool>> {
        match self {
            Self::Sidecar(listeners) => vec![listeners.accept_plaintext(accepts.port)],
            Self::Ztunnel(enforced) => {
                pods.iter().map(|pod| enforced.accepts_plaintext(*pod, accepts.port)).collect()
            }
        }
    }

    /// Name of the proxy in a reason.
    fn subject(&self, proxy: &str, service: &str) -> String {
        match self {
            Self::Sidecar(_) => proxy.to_owned(),
            Self::Ztunnel(_) => format!("{proxy} for {service}"),
        }
    }
}

/// Notes in a proof what a proxy at this station accepts, and as reasons what contradicts the claims.
pub fn note_accepted(
    path: &mut PathProof,
    (proxy, station): (&str, &str),
    claims: &[Claim<'_>],
    inbound: Result<Inbound, String>,
) {
    let inbound = match inbound {
        Ok(inbound) => inbound,
        Err(error) => {
            return path.reasons.push(format!("whether {proxy} accepts plaintext is not known: {error}"));
        }
    };
    for claim in claims {
        let accepted = inbound.accepts_plaintext(claim);
        let subject = inbound.subject(proxy, claim.service);
        let contradictions = accepted.iter().filter_map(|one| claim.accepts.contradiction(&subject, *one));
        path.reasons.extend(contradictions.take(1));
        for proof in path.proxies.iter_mut().filter(|proof| proof.name == station) {
            proof.takes_plain_text = accepted.iter().flatten().copied().max().max(proof.takes_plain_text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::environment::MutualTls;
    use results::ProxyProof;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn proof_of(name: &str) -> ProxyProof {
        ProxyProof {
            name: name.to_owned(),
            requests_received: 0,
            requests_expected: 0,
            streams: None,
            tls_handshakes: 0,
            tls_expected: true,
            takes_plain_text: None,
            counters: BTreeMap::new(),
        }
    }

    /// Reasons, and what is noted of the proxy.
    fn noted(
        (proxy, station): (&str, &str),
        claims: &[Claim<'_>],
        inbound: Result<Inbound, String>,
    ) -> (String, Option<bool>) {
        let mut path = PathProof { proxies: vec![proof_of(station)], ..PathProof::default() };
        note_accepted(&mut path, (proxy, station), claims, inbound);
        (path.reasons.join("; "), path.proxies[0].takes_plain_text)
    }

    fn claim(
        service: &'static str,
        mtls: MutualTls,
        pods: Vec<(&'static str, &'static str)>,
    ) -> Claim<'static> {
        Claim { service, accepts: Accepts::new(8080, mtls), pods }
    }

    #[test]
    fn listeners_that_contradict_the_experiment_leave_the_path_unproven() {
        let of_sidecar = |mtls: MutualTls, chain: Value| {
            let chains = json!([{"filter_chain_match": {"destination_port": 8080}}, chain]);
            let dump = json!({"configs": [{"active_state": {"listener": {"filter_chains": chains}}}]});
            let inbound = Inbound::Sidecar(serde_json::from_value(dump).unwrap());
            noted(("server-1-proxy", "server-proxy"), &[claim("server", mtls, Vec::new())], Ok(inbound))
        };
        let plain = of_sidecar(MutualTls::Permissive, json!({}));
        assert_eq!(plain, (String::new(), Some(true)));
        let contradiction = "server-1-proxy accepts plaintext, against what `proxy.mtls` says".to_owned();
        assert_eq!(of_sidecar(MutualTls::Strict, json!({})), (contradiction, Some(true)));
        let unread = noted(
            ("server-1-proxy", "server-proxy"),
            &[claim("server", MutualTls::Strict, Vec::new())],
            Err("it is gone".to_owned()),
        );
        let expected = "whether server-1-proxy accepts plaintext is not known: it is gone".to_owned();
        assert_eq!(unread, (expected, None));
    }

    /// A ztunnel that denies plaintext to `server-1` alone.
    fn ztunnel() -> Inbound {
        let dump = json!({
            "workloads": [
                {"name": "server-1", "namespace": "perf", "authorizationPolicies": ["istio-system/strict"]},
                {"name": "server-2", "namespace": "perf"},
            ],
            "policies": [{
                "name": "strict", "namespace": "istio-system", "scope": "WorkloadSelector", "action": "Deny",
                "rules": [[[{"notPrincipals": [{"Presence": []}]}]]],
            }],
        });
        Inbound::Ztunnel(serde_json::from_value(dump).unwrap())
    }

    #[test]
    fn every_pod_behind_a_ztunnel_must_refuse_plaintext_where_the_experiment_is_strict() {
        let of_ztunnel =
            |mtls, pods| noted(("ztunnel-1", "ztunnel"), &[claim("server", mtls, pods)], Ok(ztunnel()));
        let (strict, open, gone) = (("perf", "server-1"), ("perf", "server-2"), ("perf", "server-3"));
        assert_eq!(of_ztunnel(MutualTls::Strict, vec![strict]), (String::new(), Some(false)));
        assert_eq!(of_ztunnel(MutualTls::Permissive, vec![open]), (String::new(), Some(true)));
        let (reason, accepted) = of_ztunnel(MutualTls::Strict, vec![strict, open]);
        assert_eq!(reason, "ztunnel-1 for server accepts plaintext, against what `proxy.mtls` says");
        assert_eq!(accepted, Some(true));
        let (reason, accepted) = of_ztunnel(MutualTls::Permissive, vec![open, strict]);
        assert_eq!(reason, "ztunnel-1 for server refuses plaintext, against what `proxy.mtls` says");
        assert_eq!(accepted, Some(true));
        let (reason, accepted) = of_ztunnel(MutualTls::Strict, vec![gone]);
        assert_eq!(reason, "ztunnel-1 for server does not show whether plaintext is accepted");
        assert_eq!(accepted, None);
    }

    #[test]
    fn claims_of_several_services_are_all_noted() {
        let claims = [
            claim("web", MutualTls::Strict, vec![("perf", "server-1")]),
            claim("shop", MutualTls::Strict, vec![("perf", "server-2")]),
        ];
        let (reasons, accepted) = noted(("ztunnel", "ztunnel"), &claims, Ok(ztunnel()));
        assert_eq!(reasons, "ztunnel for shop accepts plaintext, against what `proxy.mtls` says");
        assert_eq!(accepted, Some(true));
    }
}
