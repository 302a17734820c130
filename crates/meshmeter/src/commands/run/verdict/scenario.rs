//! Checks that a generator used TLS as the trial's scenario requires, by its own counts. The gateway's counts
//! are part of the path proof.

use experiment::environment::Scenario;
use results::LoadResult;

/// Key type of the certificates in scenario `rsa`.
const RSA_KEY: &str = "RSA 2048";
/// Minimum share of the sessions that a scenario calls for: connections break, and some stay unused.
const MIN_SHARE: f64 = 0.9;

/// What contradicts the scenario, as text.
pub(super) fn contradiction(scenario: Scenario, result: &LoadResult) -> Option<String> {
    let sessions = |of: &str| -> u64 {
        result.tls_sessions.iter().filter(|(name, _)| name.contains(of)).map(|(_, count)| count).sum()
    };
    let (all, resumed) = (sessions(""), sessions("resumed"));
    let requests = result.requests.sent + result.warmup.sent;
    let is_most = |count: u64, of: u64| count as f64 >= MIN_SHARE * of as f64;
    let too_few = || (!is_most(all, requests)).then(|| format!("{requests} requests had {all} sessions"));
    let unless = |is_met: bool, counted: u64, what: &str| {
        (!is_met).then(|| format!("{counted} of {all} sessions were {what}"))
    };
    match scenario {
        Scenario::Tls12 => {
            let tls12 = sessions("TLSv1_2");
            unless(all > 0 && tls12 == all, tls12, "TLS 1.2")
        }
        Scenario::Rsa => {
            let rsa = result.tls_server_keys.get(RSA_KEY).copied().unwrap_or(0);
            unless(all > 0 && rsa == all, rsa, "with a key of RSA 2048")
        }
        Scenario::FullHandshakes => too_few().or_else(|| unless(resumed == 0, resumed, "resumed")),
        Scenario::Resumption => too_few().or_else(|| {
            // The first session of each connection has none to resume.
            let resumable = all.saturating_sub(result.connections as u64);
            unless(resumed > 0 && is_most(resumed, resumable), resumed, "resumed")
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::RequestCounts;

    /// A result of 100 requests on two connections, with these sessions, all with the same key type.
    fn result(sessions: &[(&str, u64)], key: &str) -> LoadResult {
        let all = sessions.iter().map(|(_, count)| count).sum();
        LoadResult {
            connections: 2,
            requests: RequestCounts { sent: 100, ..RequestCounts::default() },
            tls_sessions: sessions.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            tls_server_keys: [(key.to_owned(), all)].into(),
            ..LoadResult::default()
        }
    }

    #[test]
    fn scenarios_are_checked_by_generator_counts() {
        const V1_3: &str = "TLSv1_3 TLS13_AES_256_GCM_SHA384";
        const V1_2: &str = "TLSv1_2 TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
        const RESUMED: &str = "TLSv1_3 TLS13_AES_256_GCM_SHA384 resumed";
        let usual = result(&[(V1_3, 2)], "ECDSA P-256");
        let per_request = result(&[(V1_3, 100)], "ECDSA P-256");
        let resuming = result(&[(V1_3, 4), (RESUMED, 97)], "ECDSA P-256");
        for (scenario, good, bad) in [
            (Scenario::Tls12, result(&[(V1_2, 2)], "ECDSA P-256"), vec![&usual, &per_request]),
            (Scenario::Rsa, result(&[(V1_3, 2)], "RSA 2048"), vec![&usual]),
            (Scenario::FullHandshakes, per_request.clone(), vec![&usual, &resuming]),
            (Scenario::Resumption, resuming.clone(), vec![&usual, &per_request]),
            (Scenario::NoFilters, usual.clone(), Vec::new()),
        ] {
            assert_eq!(contradiction(scenario, &good), None, "{scenario:?}");
            for bad in bad {
                assert!(contradiction(scenario, bad).is_some(), "{scenario:?}: {:?}", bad.tls_sessions);
            }
        }
        let said = contradiction(Scenario::Resumption, &per_request);
        assert_eq!(said.as_deref(), Some("0 of 100 sessions were resumed"));
    }
}
