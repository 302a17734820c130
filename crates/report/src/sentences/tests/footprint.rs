use super::*;

#[test]
fn propagation_time_is_estimated_per_proxy() {
    let (_, summary) = run(THREE_MODES, |trial| {
        if trial.mode == Mode::Sidecar {
            let in_force_s = BTreeMap::from([("client-proxy".to_owned(), 0.17)]);
            trial.push = Some(ConfigurationPush { objects: 3, written_s: 0.02, in_force_s });
        }
    });
    let sidecar = summary.cells.iter().find(|cell| cell.mode == Mode::Sidecar).unwrap();
    let time = |name: &str| {
        let component = sidecar.components.iter().find(|component| component.name == name).unwrap();
        component.estimate(Metric::ConfiguredInS)
    };
    assert!((time("client-proxy").unwrap().estimate - 0.17).abs() < 1e-9);
    assert_eq!(time("server-proxy"), None);
}

#[test]
fn footprint_states_memory_before_load_and_rejected_updates() {
    let (_, summary) = run(THREE_MODES, |trial| {
        for usage in trial.components.iter_mut().filter(|usage| usage.role == Role::Proxy) {
            usage.memory_before_load_bytes = Some(38_000_000 + trial.repeat as u64 * 50_000);
            let counts = ConfigurationCounts {
                clusters: Some(41),
                listeners: Some(3),
                routes: Some(80),
                endpoints: Some(60),
                rejected_updates: Some(u64::from(trial.repeat == 2 && usage.name == "server-proxy")),
                ..ConfigurationCounts::default()
            };
            let size_bytes = if usage.name == "client-proxy" { 310_000 } else { 20_000 };
            let configuration = ProxyConfiguration { size_bytes, dump_bytes: 2 * size_bytes, counts };
            usage.holdings =
                Some(ProxyFootprint { configuration: Some(configuration), ..ProxyFootprint::default() });
        }
    });
    let mut findings = sentences(&summary);
    findings.retain(|finding| finding.contains("first request") || finding.contains("rejected"));
    insta::assert_snapshot!(findings.join("\n"));
}

#[test]
fn memory_caused_by_load_is_not_attributed_to_configuration() {
    let (_, summary) = run(THREE_MODES, |trial| {
        for usage in trial.components.iter_mut().filter(|usage| usage.role == Role::Proxy) {
            usage.memory_before_load_bytes = Some(19_000_000);
        }
    });
    let reported = reported(&summary);
    assert!(
        reported.contains("before the first request") && !reported.contains("most of what"),
        "{reported}"
    );
}
