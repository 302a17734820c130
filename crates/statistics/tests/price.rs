//! Prices from simulated runs with known truth: intervals contain it, and what the runs do not support is refused or named.

#[path = "size/generated_mesh.rs"]
mod generated_mesh;
#[path = "size/generated_run.rs"]
mod generated_run;
#[path = "size/generated_trial.rs"]
mod generated_trial;

use experiment::topology::Resources;
use generated_mesh::{Mesh, NODES, full};
use results::{
    BasisKind, Estimate, FactorValue, Figure, Figures, Mode, PriceResult, PricedCall, PricedMode, Prices,
    SizeNoteKind,
};
use statistics::size::MeasuredRun;
use statistics::size::price::{FullScale, PriceQuestion, Waypoints, WhatIf, price};
use std::time::Duration;

const SEEDS: u64 = 400;
const MODES: [Mode; 3] = [Mode::Sidecar, Mode::Ambient, Mode::AmbientWaypoint];

fn question() -> PriceQuestion {
    let prices = Prices { cpu_hour: 0.04, gb_hour: 0.005, ..Prices::default() };
    PriceQuestion { full: Some(full()), nodes: Some(NODES), prices: Some(prices), ..PriceQuestion::default() }
}

fn mode(result: &PriceResult, mode: Mode) -> &PricedMode {
    let found = result.modes.iter().find(|one| one.mode == mode);
    found.unwrap_or_else(|| panic!("{mode} is priced: {:?}", result.refusals))
}

fn holds(estimate: Option<Estimate>, truth: f64) -> bool {
    let ends = estimate.and_then(|one| one.low.zip(one.high));
    ends.is_some_and(|(low, high)| low <= truth && truth <= high)
}

fn near(estimate: Option<Estimate>, truth: f64) -> bool {
    estimate.is_some_and(|one| (one.estimate / truth - 1.0).abs() < 1e-3)
}

/// Text of an assumption about this.
fn assumed<'a>(result: &'a PriceResult, what: &str) -> Option<&'a str> {
    let is_meant = |basis: &&results::Basis| basis.kind == BasisKind::Assumed && basis.what == what;
    result.rests_on.iter().find(is_meant).map(|basis| basis.value.as_str())
}

/// Detail of the warning that the answer is far beyond what was measured.
fn far(result: &PriceResult) -> Option<&str> {
    let note = result.notes.iter().find(|note| note.kind == SizeNoteKind::FarBeyondMeasured)?;
    note.detail.as_deref()
}

#[test]
fn full_scale_far_beyond_the_runs_is_a_warning() {
    let mesh = Mesh { repeats: 2, ..Mesh::default() };
    let warned = |scales: &[f64]| {
        let runs: Vec<MeasuredRun> = scales.iter().map(|scale| mesh.run(*scale, 1)).collect();
        let result = price(&question(), &runs);
        (far(&result).map(str::to_owned), result)
    };
    let (near, result) = warned(&[0.2, 0.4]);
    assert_eq!(near, None);
    let extrapolated = assumed(&result, "extrapolated pods in the mesh, mode ambient");
    assert_eq!(extrapolated, Some("up to 40, measured up to 17"));

    let (beyond, _) = warned(&[0.1, 0.2]);
    let beyond = beyond.expect("five times the greatest scale");
    for text in [
        "pods in the mesh up to 40, measured up to 9 (sidecar, ambient, ambient-waypoint)",
        "requests of all drivers up to 600 requests/s, measured up to 120 requests/s (sidecar, ambient, ambient-waypoint)",
        "requests through a waypoint up to 1200 requests/s, measured up to 240 requests/s (ambient-waypoint)",
    ] {
        assert!(beyond.contains(text), "{text}: {beyond}");
    }
    let (single, _) = warned(&[0.4]);
    let single = single.expect("one scale");
    assert!(single.contains("pods in the mesh up to 40, measured up to 17, at one scale"), "{single}");
    let (whole, result) = warned(&[1.0]);
    assert_eq!((whole, assumed(&result, "extrapolated pods in the mesh, mode ambient")), (None, None));
}

#[test]
fn full_scale_without_noise_is_found_from_two_scales() {
    let quiet = Mesh { between: 0.0, proxies: 0.0, repeat: 0.0, ..Mesh::default() };
    let result = price(&question(), &[quiet.run(0.2, 1), quiet.run(0.4, 1)]);
    assert_eq!((result.topology.as_str(), result.refusals.as_slice()), ("mesh", &[][..]));
    assert_eq!(mode(&result, Mode::None).proxies, 0);
    for of in MODES {
        let (cores, bytes, proxies) = quiet.truth(of, 1);
        let priced = mode(&result, of);
        assert_eq!(priced.proxies, proxies, "{of}");
        assert!(near(priced.cpu_cores_used, cores), "{of}: {cores} {:?}", priced.cpu_cores_used);
        assert!(near(priced.memory_bytes_used, bytes), "{of}: {bytes} {:?}", priced.memory_bytes_used);
        let cost = (cores * 0.04 + bytes / 1e9 * 0.005) * 730.0;
        assert!(near(priced.cost_per_month, cost), "{of}: {cost} {:?}", priced.cost_per_month);
        let names: Vec<&str> = priced.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["one", "two"], "{of}");
        assert!(near(priced.entries[0].added_us.p50, 400.0) && near(priced.entries[1].added_us.p99, 800.0));
        let named = |calls: &[PricedCall]| -> Vec<String> {
            calls.iter().map(|call| format!("{} {}", call.from, call.to)).collect()
        };
        assert_eq!(named(&priced.calls), ["shop/cart stores/stock", "shop/web shop/cart"], "{of}");
        assert!(priced.calls.iter().all(|call| near(call.added_us.p50, 300.0)), "{of}: {:?}", priced.calls);
        let path = named(&priced.entries[0].critical_path);
        assert_eq!(path, ["shop/web shop/cart", "shop/web stores/pay", "shop/cart stores/stock"], "{of}");
        let by_namespace = result.namespaces.iter().flat_map(|namespace| &namespace.modes);
        let own = by_namespace.filter(|one| one.mode == of);
        let sum: f64 = own.filter_map(|one| Some(one.cpu_cores_used?.estimate)).sum();
        assert!(near(priced.cpu_cores_used, sum), "{of}: namespaces add up: {sum}");
    }
    assert!((mode(&result, Mode::Sidecar).cpu_cores_reserved - 4.0).abs() < 1e-9, "40 pods with 100m each");
    let ambient = mode(&result, Mode::Ambient);
    assert!((ambient.cpu_cores_reserved - NODES as f64 * 0.2).abs() < 1e-9, "200m for each ztunnel");
    assert_eq!(ambient.memory_bytes_reserved, NODES as f64 * 512.0 * 1_048_576.0);
    assert_eq!(result.model_error, None);
    assert!(assumed(&result, "CPU and memory of today's proxies").is_some());
}

#[test]
fn full_scale_is_within_the_intervals_in_93_of_100() {
    let noisy = Mesh { repeats: 3, between: 0.1, has_idle: false, ..Mesh::default() };
    for mesh in [Mesh::default(), noisy] {
        let mut hits = [[0; 3]; 3];
        for seed in 0..SEEDS {
            let result = price(&question(), &[mesh.run(0.2, seed), mesh.run(0.4, seed)]);
            for (of, hits) in MODES.into_iter().zip(&mut hits) {
                let (cores, bytes, _) = mesh.truth(of, seed);
                let (priced, cost) = (mode(&result, of), (cores * 0.04 + bytes / 1e9 * 0.005) * 730.0);
                hits[0] += u64::from(holds(priced.cpu_cores_used, cores));
                hits[1] += u64::from(holds(priced.memory_bytes_used, bytes));
                hits[2] += u64::from(holds(priced.cost_per_month, cost));
            }
        }
        println!("{mesh:?}: {hits:?} of {SEEDS}");
        let all = hits.iter().flatten();
        assert!(all.clone().all(|hits| hits * 100 >= 93 * SEEDS), "{mesh:?}: {hits:?} of {SEEDS}");
    }
}

#[test]
fn one_scale_says_what_it_cannot_tell_and_its_interval_is_wide() {
    let mesh = Mesh { has_idle: false, ..Mesh::default() };
    let mut hits = 0;
    for seed in 0..20 {
        let result = price(&question(), &[mesh.run(0.4, seed)]);
        let (cores, ..) = mesh.truth(Mode::Ambient, seed);
        hits += u64::from(holds(mode(&result, Mode::Ambient).cpu_cores_used, cores));
        let text = assumed(&result, "CPU of a node proxy, mode ambient").unwrap();
        assert!(text.contains("one rate was measured"), "{text}");
        let text = assumed(&result, "CPU of a sidecar, mode sidecar").unwrap();
        assert!(text.contains("differences between workloads"), "{text}");
        let text = assumed(&result, "memory of a sidecar, mode sidecar").unwrap();
        assert!(text.contains("did not vary"), "{text}");
    }
    assert_eq!(hits, 20);
}

#[test]
fn without_a_topology_the_greatest_load_is_priced() {
    let mesh = Mesh::default();
    let result = price(&PriceQuestion { full: None, ..question() }, &[mesh.run(0.2, 1), mesh.run(0.4, 1)]);
    assert!((result.requests_per_s - 240.0).abs() < 1e-9);
    assert_eq!(mode(&result, Mode::Sidecar).proxies, 17, "1 + 4 + 6 + 3 + 1 + 2");
}

#[test]
fn telemetry_and_objects_of_sidecars_are_used() {
    let quiet = Mesh { between: 0.0, proxies: 0.0, repeat: 0.0, ..Mesh::default() };
    let (cores, bytes, _) = quiet.truth(Mode::Sidecar, 1);
    let own = Resources { cpu_request_cores: Some(1.0), ..Resources::default() };
    let full = FullScale {
        sidecar_requests: [("shop/web".to_owned(), own)].into(),
        sidecar_cpu_cores: Some(cores / 1.25),
        sidecar_memory_bytes: Some(bytes),
        ..full()
    };
    let result =
        price(&PriceQuestion { full: Some(full), ..question() }, &[quiet.run(0.2, 1), quiet.run(0.4, 1)]);
    assert!(
        (mode(&result, Mode::Sidecar).cpu_cores_reserved - 13.0).abs() < 1e-9,
        "10 of 40 pods have 1 core"
    );
    let error = result.model_error.as_ref().unwrap();
    assert!((error.cpu_cores.unwrap().error - 0.25).abs() < 1e-3);
    assert!(error.memory_bytes.unwrap().error.abs() < 1e-3);
    assert!(
        result
            .rests_on
            .iter()
            .any(|basis| basis.kind == BasisKind::Learned
                && basis.what == "CPU and memory requests of sidecars")
    );
}

#[test]
fn changes_by_measured_factors_by_requests_and_by_waypoints_are_found() {
    let quiet = Mesh { between: 0.0, proxies: 0.0, repeat: 0.0, scope: "[off, on]", ..Mesh::default() };
    let runs = [quiet.run(0.2, 1), quiet.run(0.4, 1)];
    let asked = |what_if: WhatIf| price(&PriceQuestion { what_if: Some(what_if), ..question() }, &runs);
    let scoped = || WhatIf {
        factors: [("istio.sidecar-scope".to_owned(), FactorValue::from_typed("on"))].into(),
        ..WhatIf::default()
    };
    let result = asked(scoped());
    let (cores, bytes, _) = quiet.truth(Mode::Sidecar, 1);
    let priced = mode(&result, Mode::Sidecar);
    assert!(near(priced.cpu_cores_used, cores) && near(priced.memory_bytes_used, bytes), "the first value");
    let changes = result.what_if.as_ref().unwrap();
    assert_eq!(changes.settings, ["istio.sidecar-scope on"]);
    let [change] = &changes.modes[..] else { panic!("ambient modes have no sidecars: {changes:?}") };
    assert_eq!((change.mode, change.proxies, change.cpu_cores_reserved), (Mode::Sidecar, 0, 0.0));
    assert!(near(change.cpu_cores_used, -0.1 * cores), "{change:?}");
    assert!(near(change.memory_bytes_used, -30_000.0 * 40.0 * 40.0), "{change:?}");
    assert!(change.entries.iter().all(|entry| entry.added_us.p50.unwrap().estimate.abs() < 1e-9));

    let mut what_if = scoped();
    what_if.sidecar_requests.cpu_request_cores = Some(0.05);
    what_if.waypoints = Some(Waypoints::PerService);
    let changes = asked(what_if).what_if.unwrap();
    let [sidecar, waypoint] = &changes.modes[..] else { panic!("{changes:?}") };
    assert!((sidecar.cpu_cores_reserved + 2.0).abs() < 1e-9, "40 pods with 50m less");
    assert_eq!(
        (waypoint.mode, waypoint.proxies),
        (Mode::AmbientWaypoint, 3),
        "five services, two namespaces"
    );
    assert!(near(waypoint.cpu_cores_used, 3.0 * 0.004), "idle waypoints: {waypoint:?}");
    assert!(near(waypoint.memory_bytes_used, 3.0 * (50e6 + 20_000.0 * 40.0)), "{waypoint:?}");
    let only = Waypoints::Namespaces(["shop".to_owned()].into());
    let what_if = WhatIf { waypoints: Some(only), ..scoped() };
    assert_eq!(asked(what_if).what_if.unwrap().modes[1].proxies, -1);
}

#[test]
fn change_is_within_its_interval_in_93_of_100() {
    let mesh = Mesh { scope: "[off, on]", ..Mesh::default() };
    let what_if = WhatIf {
        factors: [("istio.sidecar-scope".to_owned(), FactorValue::from_typed("on"))].into(),
        ..WhatIf::default()
    };
    let question = PriceQuestion { what_if: Some(what_if), ..question() };
    let mut hits = [0; 2];
    for seed in 0..SEEDS {
        let result = price(&question, &[mesh.run(0.2, seed), mesh.run(0.4, seed)]);
        let change = &result.what_if.unwrap().modes[0];
        let (cores, ..) = mesh.truth(Mode::Sidecar, seed);
        hits[0] += u64::from(holds(change.cpu_cores_used, -0.1 * cores));
        hits[1] += u64::from(holds(change.memory_bytes_used, -30_000.0 * 40.0 * 40.0));
    }
    assert!(hits.iter().all(|hits| hits * 100 >= 93 * SEEDS), "{hits:?} of {SEEDS}");
}

#[test]
fn settings_that_were_not_measured_are_refused() {
    let mesh = Mesh { repeats: 2, scope: "[off, on]", ..Mesh::default() };
    let runs = [mesh.run(0.2, 1), mesh.run(0.4, 1)];
    let refused = |what_if: Option<WhatIf>, kind: SizeNoteKind, text: &str| {
        let result = price(&PriceQuestion { what_if, ..question() }, &runs);
        let refusal = result.refusals.first().unwrap_or_else(|| panic!("{text} is refused"));
        assert!(refusal.kind == kind && refusal.detail.as_deref().unwrap().contains(text), "{refusal:?}");
    };
    let of = |key: &str, value: &str| {
        let factors = [(key.to_owned(), FactorValue::from_typed(value))].into();
        Some(WhatIf { factors, ..WhatIf::default() })
    };
    refused(None, SizeNoteKind::MixedSettings, "istio.sidecar-scope");
    refused(of("istio.sidecar-scope", "maybe"), SizeNoteKind::NotMeasured, "has off, on");
    refused(of("proxy.workers", "4"), SizeNoteKind::NotMeasured, "has one value of it");
    let waypoints = Some(Waypoints::Namespaces(["nowhere".to_owned()].into()));
    let what_if = of("istio.sidecar-scope", "on").map(|own| WhatIf { waypoints, ..own });
    refused(what_if, SizeNoteKind::NotMeasured, "the namespace nowhere");
    refused(
        of("istio.sidecar-scope", "off"),
        SizeNoteKind::NotMeasured,
        "a mode that istio.sidecar-scope off changes",
    );
}

#[test]
fn what_cannot_be_said_is_refused() {
    let mesh = Mesh { repeats: 2, ..Mesh::default() };
    let runs = || vec![mesh.run(0.2, 1), mesh.run(0.4, 1)];
    let refused = |question: &PriceQuestion, runs: &[MeasuredRun], kind: SizeNoteKind, text: &str| {
        let result = price(question, runs);
        let refusal = result.refusals.first().unwrap_or_else(|| panic!("{text} is refused"));
        let detail = refusal.detail.as_deref().unwrap_or_default();
        assert!(refusal.kind == kind && detail.contains(text), "{refusal:?}");
        result
    };
    let asked = PriceQuestion { modes: vec![Mode::Ingress, Mode::Sidecar], ..question() };
    let result =
        refused(&asked, &runs(), SizeNoteKind::NotMeasured, "mode ingress; measured modes: none, sidecar");
    assert_eq!(result.modes.len(), 1, "the other mode is priced");

    let mut other = runs();
    other[1].host.kernel = "6.19".to_owned();
    refused(&question(), &other, SizeNoteKind::MixedMachines, "6.19");
    let mut other = runs();
    other[1].experiment.proxy.cpu_time = Duration::from_millis(1);
    refused(&question(), &other, SizeNoteKind::MixedSettings, "proxy");

    let mut spoiled = runs();
    for trial in spoiled.iter_mut().flat_map(|run| &mut run.trials) {
        trial.verdict.spoil("not-observed: x", Figures::none().with(Figure::Cpu).with(Figure::Memory));
    }
    let result =
        refused(&question(), &spoiled, SizeNoteKind::NoValidTrial, "sidecar in mode sidecar: not-observed");
    assert_eq!(result.modes.len(), 1, "mode none has no proxies");
    let as_measured = PriceQuestion { full: None, ..question() };
    refused(&as_measured, &spoiled, SizeNoteKind::NoValidTrial, "not-observed");

    let mut full = full();
    full.rates.remove("two");
    let unknown = PriceQuestion { full: Some(full.clone()), ..question() };
    refused(&unknown, &runs(), SizeNoteKind::NotMeasured, "driver two");
    full.topology.workloads.retain(|workload| workload.name != "idle");
    full.rates.insert("two".to_owned(), 1.0);
    let smaller = PriceQuestion { full: Some(full), ..question() };
    refused(&smaller, &runs(), SizeNoteKind::NotMeasured, "stores/idle");
}
