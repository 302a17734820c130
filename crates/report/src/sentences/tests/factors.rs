use super::*;
use results::FindingKind;
use results::finding::Headline;

/// A proxy's memory grows by 90 kB per background service, and a change propagates later; requests are not
/// affected.
#[test]
fn mesh_size_finding_states_costs() {
    let sizes = "{name: t, mesh: istio, modes: [sidecar], load: {rate: [100, 1000], duration: 2500ms}, repeats: 3, \
                 istio: {background-services: {services: [200, 0, 1000]}}}";
    let grown = |trial: &mut TrialRecord| {
        let services = trial.load.surrounding_services.unwrap() as u64;
        let in_force_s = 0.13 + 0.000_13 * services as f64 + 0.001 * trial.repeat as f64;
        trial.push = Some(ConfigurationPush {
            objects: 3,
            written_s: 0.02,
            in_force_s: BTreeMap::from([("client-proxy".to_owned(), in_force_s)]),
        });
        for usage in trial.components.iter_mut().filter(|usage| usage.role == Role::Proxy) {
            let noise = (trial.index as u64 * 7919) % 13 * 10_000;
            usage.memory_anonymous_before_load_bytes = Some(28_000_000 + 90_000 * services + noise);
        }
    };
    let (_, summary) = run(sizes, grown);
    insta::assert_snapshot!(sentences(&summary)[..3].join("\n"));
    let cells: Vec<_> =
        summary.cells.iter().map(|cell| (&cell.load.surrounding_services, cell.load.rate)).collect();
    assert_eq!(cells.len(), 6);
    assert!(cells.is_sorted_by(|one, other| one.0 <= other.0), "{cells:?}");
    let again: Summary = serde_json::from_str(&serde_json::to_string(&summary).unwrap()).unwrap();
    assert_eq!(again.factor_effects.len(), summary.factor_effects.len());
    assert!(
        reported(&summary)
            .contains("With a sidecar pair a proxy uses 0.039 cores at 100/s among no background services.")
    );
    let one_size = sizes.replace("[200, 0, 1000]", "200");
    let (_, single) = run(&one_size, |_| ());
    assert!(single.factor_effects.is_empty() && single.cells[0].load.surrounding_services.is_none());
}

/// Connections cost nothing, workers make proxies faster; the cells of a run with two factors are kept apart.
#[test]
fn factor_finding_states_cost_per_mode() {
    let text = "{name: t, modes: [none, sidecar], load: {rate: 1000, duration: 2500ms}, repeats: 3, \
                topology: {shape: chain, hops: [1, 2, 4]}}";
    let (_, summary) = run(text, |trial| {
        let hops = trial.factors["topology.hops"].quantity("topology.hops").unwrap();
        let each_us = if trial.mode == Mode::Sidecar { 400.0 } else { 50.0 };
        let result = trial.result.as_mut().unwrap();
        result.response_time_us = histogram(2500, 100.0 + each_us * hops, None).summary();
        result.response_time_us.p50 = Some(100.0 + each_us * hops + (trial.index % 3) as f64);
        for usage in trial.components.iter_mut().filter(|usage| usage.role == Role::Proxy) {
            let bytes = 40_000_000 + 500_000 * hops as u64 + trial.repeat as u64 * 10_000;
            usage.memory_anonymous_bytes = Some(bytes);
        }
    });
    let said = |mode: &str, what: &str| {
        let sentences = sentences(&summary).into_iter();
        sentences
            .filter(|finding| finding.contains(&format!("({mode}, 1000/s)")))
            .any(|finding| finding.contains("4 hops instead of 1") && finding.contains(what))
    };
    assert!(said("sidecar", "Each further hop: median +0.40 ms"), "{:?}", summary.findings);
    assert!(said("sidecar", "anonymous proxy memory +"), "{:?}", summary.findings);
    assert!(said("no mesh", "Each further hop: median +50 µs"), "{:?}", summary.findings);
}

#[test]
fn factor_finding_states_throughput_of_closed_loop() {
    let text = "{name: t, modes: [sidecar], load: {clients: 64, duration: 2500ms}, repeats: 3, proxy: {workers: [1, 2]}}";
    let (_, summary) = run(text, |trial| {
        let workers = trial.factors["proxy.workers"].quantity("proxy.workers").unwrap();
        trial.result.as_mut().unwrap().rate.completed = 5000.0 * workers + trial.repeat as f64;
    });
    let said = sentences(&summary).join("\n");
    assert!(said.contains("2 workers instead of 1"), "{said}");
    assert!(said.contains("throughput +5000 requests/s"), "{said}");
}

#[test]
fn findings_name_values_of_factors() {
    let text = "{name: t, modes: [none, sidecar], load: {rate: 1000, connections: [2, 16], duration: 2500ms}, repeats: 3, \
                proxy: {workers: [1, 2, 4]}}";
    let faster = |trial: &mut TrialRecord| {
        if let Some(workers) = trial.factors.get("proxy.workers") {
            let workers = workers.quantity("proxy.workers").unwrap();
            let result = trial.result.as_mut().unwrap();
            result.response_time_us = histogram(2500, 600.0 - 50.0 * workers, None).summary();
            let noise = (trial.index * 7919 % 13) as f64 * 0.2;
            result.response_time_us.p50 = result.response_time_us.p50.map(|us| us + noise);
        }
    };
    let (_, summary) = run(text, faster);
    assert_eq!(summary.cells.len(), 2 + 2 * 3, "workers of proxies do not touch mode none");
    let factors = |mode| if mode == Mode::None { 1 } else { 2 };
    assert!(summary.cells.iter().all(|cell| cell.valid == 3 && cell.factors.len() == factors(cell.mode)));
    assert_eq!(summary.comparisons.len(), 6);
    let of_workers = summary.factor_effects.iter().filter(|effect| effect.factor == "proxy.workers");
    assert!(of_workers.clone().count() > 0 && of_workers.clone().all(|effect| effect.mode == Mode::Sidecar));
    let slope = |mode: Mode, connections: &str| {
        let found = summary.factor_effects.iter().find(|effect| {
            (effect.factor.as_str(), effect.mode) == ("proxy.workers", mode)
                && effect.figure == results::Metric::ResponseTimeP50Us
                && effect.factors["load.connections"].to_string() == connections
        });
        found.unwrap().per_unit
    };
    for connections in ["2", "16"] {
        assert!((slope(Mode::Sidecar, connections).estimate + 50.0).abs() < 2.0);
    }
    let mut named = sentences(&summary);
    named.retain(|finding| finding.contains("worker"));
    insta::assert_snapshot!(named.join("\n"));
    let again: Summary = serde_json::from_str(&serde_json::to_string(&summary).unwrap()).unwrap();
    assert_eq!(again.cells[5].factors, summary.cells[5].factors);
}

/// A copy of a program has its pages elsewhere in the page cache. A mode without proxies is measured once.
#[test]
fn headline_of_builds_has_neither_resident_memory_nor_modes_without_the_build() {
    let text = "{name: t, mesh: istio, modes: [none, sidecar], load: {rate: 1000, duration: 2500ms}, repeats: 5, \
                components: {istio: [1.29.4, 1.30.1]}}";
    let (_, summary) = run(text, |trial| {
        let version = trial.factors.get("components.istio").map(ToString::to_string);
        let is_copy = version.as_deref() == Some("1.30.1");
        for usage in trial.components.iter_mut().filter(|usage| is_copy && usage.role == Role::Proxy) {
            usage.memory_resident_bytes += 3_500_000;
        }
    });
    assert!(summary.cells.iter().all(|cell| cell.factors.is_empty() == (cell.mode == Mode::None)));
    let said = sentences(&summary);
    assert!(said[0].contains("Istio 1.30.1 against 1.29.4: no difference is shown"), "{said:?}");
    assert!(summary.factor_differences.iter().all(|difference| difference.mode == Mode::Sidecar));
}

/// The same file twice: it is said once, and differences are chance.
#[test]
fn same_programs_are_named_once_in_the_headline() {
    let text = "{name: t, modes: [sidecar], load: {rate: 1000, duration: 2500ms}, repeats: 4, components: {envoy: [/a/envoy, /b/envoy]}}";
    let (experiment, mut summary) = run(text, |_| {});
    for stated in &mut summary.findings {
        if let Finding::Headline(Headline::Values(values)) = &mut stated.finding {
            values.difference.same_programs = true;
        }
    }
    fill(&experiment, &mut summary);
    let StatedFinding { text, detail, .. } = &summary.findings[0];
    assert!(text.starts_with("Envoy b/envoy against a/envoy: no difference is shown, of "), "{text}");
    assert!(text.ends_with("; both ran the same programs."), "{text}");
    assert!(
        detail.contains("What differs between equal digests is chance.") && !detail.contains("programs"),
        "{detail}"
    );
    assert!(detail.contains(" (sidecar, 1000/s) "), "the place is before the difference: {detail}");
}

/// A line that has no room for the place: it has the difference, and the detail begins with the place.
#[test]
fn place_without_room_in_the_line_begins_the_detail() {
    let text = "{name: t, modes: [sidecar], load: {rate: 1000, connections: [2, 16], duration: 2500ms}, repeats: 4, \
                proxy: {access-log: [off, json], mtls: [off, strict], workers: [2, 4]}}";
    let (_, summary) = run(text, |trial| {
        let chance = (trial.index * 7919 % 13) as f64 * 10.0;
        trial.result.as_mut().unwrap().response_time_us.p50 = Some(400.0 + chance);
    });
    let of_factors = summary.findings.iter().filter(|stated| {
        let kind = stated.finding.kind();
        [FindingKind::FactorDifference, FindingKind::FactorCorner].contains(&kind)
    });
    let mut without_place = 0;
    for StatedFinding { text, detail, .. } in of_factors {
        assert!(text.contains(": ") && !text.ends_with('…'), "{text}");
        let has_place = text.contains("(sidecar, 1000/s");
        assert!(has_place || detail.contains("t 1000/s"), "{text} | {detail}");
        assert!(!detail.contains(text.trim_end_matches('.')), "twice: {text} | {detail}");
        without_place += usize::from(!has_place);
    }
    assert!(without_place > 0, "{:?}", summary.findings);
    let is_corner = |stated: &&StatedFinding| stated.finding.kind() == FindingKind::FactorCorner;
    let corner = summary.findings.iter().find(is_corner).expect("a far corner");
    assert!(
        corner.text.starts_with("All 4 factors at their last values instead of their first"),
        "{corner:?}"
    );
    assert!(corner.detail.starts_with("Connections 2 → 16, access log off → json, "), "{corner:?}");
}
