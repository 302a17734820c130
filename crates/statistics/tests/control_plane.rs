//! Costs of control planes from simulated runs with known truth: intervals contain it, and answers name what
//! the runs cannot tell.

#[path = "size/generated_fleet.rs"]
mod generated_fleet;
#[path = "size/generated_run.rs"]
mod generated_run;

use generated_fleet::{
    ENTRY_PUSHES, FleetSweep, configuration_bytes, connecting_cpu_s, cores_of_mesh, endpoint_bytes,
    entry_bytes, memory_bytes,
};
use results::{
    ControlPlaneAnswer, ControlPlaneCosts, ControlPlaneNoteKind, ControlPlaneQuestion, ControlPlaneSize,
    CostLaw, Estimate, Prices,
};
use statistics::control_plane::model;
use statistics::control_plane::size::size_control_plane;
use statistics::size::MeasuredRun;
use statistics::summary::summarize;
use std::collections::BTreeMap;

const SEEDS: u64 = 150;

fn costs(run: &MeasuredRun) -> ControlPlaneCosts {
    model(&run.experiment, &run.trials).expect("a model").main
}

fn question() -> ControlPlaneQuestion {
    ControlPlaneQuestion {
        services: 300,
        pods: 1000,
        proxies: 400,
        namespaces: 10,
        changes_per_s: 4.0,
        other_changes_per_s: [("service-entry".to_owned(), 0.2)].into(),
        istiod_cpu_cores: Some(1.0),
        istiod_memory_bytes: Some(1e9),
        ..ControlPlaneQuestion::default()
    }
}

fn holds(estimate: Estimate, truth: f64) -> bool {
    estimate.low.is_some_and(|low| low <= truth) && estimate.high.is_some_and(|high| truth <= high)
}

fn near(estimate: Option<Estimate>, truth: f64) -> bool {
    estimate.is_some_and(|estimate| (estimate.estimate / truth - 1.0).abs() < 1e-3)
}

fn kinds(result: &ControlPlaneSize) -> Vec<ControlPlaneNoteKind> {
    let of_answers = result.answers.iter().flat_map(|answer| &answer.notes);
    result.refusals.iter().chain(of_answers).map(|note| note.kind).collect()
}

fn quiet() -> FleetSweep {
    FleetSweep { between: 0.0, repeat: 0.0, ..FleetSweep::default() }
}

#[test]
fn noise_free_laws_are_found() {
    let run = quiet().run(1);
    let summary = summarize(&run.experiment, 1, run.trials.len(), &run.host, &run.trials);
    let model = summary.control_plane_model.expect("a model");
    let costs = &model.main;
    assert_eq!((costs.kinds.as_str(), costs.istiods, model.others.len()), ("sidecar", 1, 0));
    let coefficients =
        |law: &CostLaw| -> Vec<f64> { law.terms.iter().map(|term| term.coefficient.estimate).collect() };
    for (law, truth) in [
        (&costs.configuration, &[20_000.0, 1500.0, 250.0][..]),
        (&costs.connecting, &[0.8, 2e-8, 0.03]),
        (&costs.changing, &[0.06, 1.5e-8, 2e-4]),
        (&costs.memory, &[120e6, 0.4, 90_000.0]),
        (&costs.changes["churn"].bytes, &[200.0, 150.0]),
        (&costs.changes["churn"].pushes, &[1.0]),
        (&costs.changes["service-entry"].bytes, &[5000.0, 0.8]),
        (&costs.changes["service-entry"].pushes, &[ENTRY_PUSHES]),
    ] {
        let found = coefficients(law);
        assert_eq!(found.len(), truth.len(), "{law:?}");
        for (found, truth) in found.iter().zip(truth) {
            assert!((found / truth - 1.0).abs() < 2e-3, "{law:?}");
        }
        assert!(law.greatest_residual().unwrap() < 1e-3, "{law:?}");
    }
    let services = costs.measured["services"];
    assert_eq!((services.from, services.to), (100.0, 400.0));
}

#[test]
fn intervals_contain_the_truth_in_93_of_100() {
    let designs = [
        FleetSweep::default(),
        FleetSweep { repeats: 3, ..FleetSweep::default() },
        FleetSweep { between: 0.1, repeat: 0.0, ..FleetSweep::default() },
        FleetSweep { between: 0.03, repeat: 0.1, repeats: 6, ..FleetSweep::default() },
    ];
    let asked = question();
    let bytes = configuration_bytes(300.0, 1000.0);
    let truths = [
        cores_of_mesh(300.0, 1000.0, 400.0, 4.0, 0.2),
        memory_bytes(400.0 * bytes, 300.0),
        connecting_cpu_s(400.0 * bytes, 400.0),
    ];
    for design in designs {
        let mut covered = [0.0; 9];
        for seed in 0..SEEDS {
            let run = design.run(seed);
            let answers = size_control_plane(&asked, std::slice::from_ref(&run)).answers;
            let answer = &answers[0];
            let predicted = [answer.cpu_cores, answer.memory_bytes, answer.connecting_cpu_s];
            let model = costs(&run);
            let slopes = [&model.changing, &model.memory, &model.connecting]
                .into_iter()
                .flat_map(|law| law.terms[1..].iter().map(|term| term.coefficient));
            let all = predicted.map(|estimate| estimate.expect("an answer")).into_iter().chain(slopes);
            let truths = truths.into_iter().chain([1.5e-8, 2e-4, 0.4, 90_000.0, 2e-8, 0.03]);
            for ((estimate, truth), covered) in all.zip(truths).zip(&mut covered) {
                *covered += f64::from(u8::from(holds(estimate, truth)));
            }
        }
        let slack = 3.1 * (0.93 * 0.07 / SEEDS as f64).sqrt();
        let names = [
            "cores",
            "memory",
            "connecting",
            "per byte/s",
            "per push/s",
            "per byte held",
            "per service",
            "per byte sent",
            "per connection",
        ];
        for (name, covered) in names.into_iter().zip(covered) {
            let share = covered / SEEDS as f64;
            assert!(share >= 0.93 - slack, "{name}: {share:.3} in {design:?}");
        }
    }
}

#[test]
fn istiods_share_proxies_but_not_services() {
    let run = quiet().run(1);
    let asked =
        ControlPlaneQuestion { services: 400, pods: 1500, proxies: 600, changes_per_s: 6.0, ..question() };
    let bytes = configuration_bytes(400.0, 1500.0);
    let of_change = |answer: &ControlPlaneAnswer, kind: &str, bytes: f64, pushes: f64| {
        let change = answer.changes.iter().find(|change| change.kind == kind).expect("it is asked");
        assert!(near(change.bytes, bytes) && near(change.pushes, pushes), "{change:?}");
        assert_eq!((change.measured_as.as_str(), change.affected_proxies), (kind, 600.0));
    };
    let of = |question: ControlPlaneQuestion| {
        let result = size_control_plane(&question, std::slice::from_ref(&run));
        assert!(!kinds(&result).contains(&ControlPlaneNoteKind::Extrapolated), "{result:?}");
        result.answers.into_iter().next().expect("an answer")
    };
    let answer = of(asked.clone());
    assert!(near(answer.configuration_bytes, bytes));
    assert!(near(answer.cpu_cores, cores_of_mesh(400.0, 1500.0, 600.0, 6.0, 0.2)), "{answer:?}");
    of_change(&answer, "churn", endpoint_bytes(3.75), 1.0);
    of_change(&answer, "service-entry", entry_bytes(bytes), ENTRY_PUSHES);
    let istiods = answer.istiods.expect("a size is asked");
    // 2.35 cores in all, of which 0.06 are per istiod.
    assert_eq!((istiods.estimate, istiods.binds.as_str()), (3, "cpu"));
    let memory = ControlPlaneQuestion {
        istiod_cpu_cores: None,
        istiod_memory_bytes: Some(260e6),
        headroom: 0.2,
        changes_per_s: 0.0,
        other_changes_per_s: BTreeMap::new(),
        ..asked.clone()
    };
    let istiods = of(memory.clone()).istiods.expect("a size is asked");
    // 208 MB with headroom, of which 156 MB are per istiod; 238.8 MB are shared.
    assert_eq!((istiods.estimate, istiods.binds.as_str()), (5, "memory"));
    let small = ControlPlaneQuestion { istiod_memory_bytes: Some(150e6), ..memory };
    let refused = size_control_plane(&small, std::slice::from_ref(&run));
    assert_eq!(kinds(&refused), [ControlPlaneNoteKind::IstiodTooSmall]);
    let scoped = ControlPlaneQuestion { scope: true, ..asked };
    let result = size_control_plane(&scoped, &[run]);
    assert!(near(result.answers[0].configuration_bytes, configuration_bytes(40.0, 150.0)), "{result:?}");
    assert_eq!(result.answers[0].changes[0].affected_proxies, 60.0);
}

#[test]
fn monthly_cost_covers_one_istiod_or_those_of_given_size() {
    let run = quiet().run(1);
    let prices = Prices { cpu_hour: 0.04, gb_hour: 0.005, per_replica_hour: 0.01, currency: "USD".into() };
    let unsized_question = ControlPlaneQuestion {
        istiod_cpu_cores: None,
        istiod_memory_bytes: None,
        headroom: 0.2,
        prices: Some(prices),
        ..question()
    };
    let cost = |question: &ControlPlaneQuestion| {
        size_control_plane(question, std::slice::from_ref(&run)).answers[0].monthly_cost
    };
    let held = 400.0 * configuration_bytes(300.0, 1000.0);
    let (cores, gb) =
        (cores_of_mesh(300.0, 1000.0, 400.0, 4.0, 0.2) / 0.8, memory_bytes(held, 300.0) / 0.8 / 1e9);
    assert!(near(cost(&unsized_question), (cores * 0.04 + gb * 0.005 + 0.01) * 730.0));
    let sized = ControlPlaneQuestion { istiod_cpu_cores: Some(1.0), ..unsized_question };
    let istiods = size_control_plane(&sized, std::slice::from_ref(&run)).answers[0].istiods.clone();
    let count = istiods.expect("a size is asked").estimate as f64;
    assert!(count > 1.0 && near(cost(&sized), (count * (0.04 + 0.01) + gb * 0.005) * 730.0), "{count}");
    assert_eq!(cost(&ControlPlaneQuestion { prices: None, ..sized }), None);
}

#[test]
fn changes_are_costed_by_own_or_similar_kind() {
    let run = quiet().run(1);
    let result = size_control_plane(
        &ControlPlaneQuestion { other_changes_per_s: [("root-policy".to_owned(), 1.0)].into(), ..question() },
        std::slice::from_ref(&run),
    );
    let answer = &result.answers[0];
    assert!(answer.cpu_cores.is_none() && answer.memory_bytes.is_some(), "{answer:?}");
    let detail = answer.notes[0].detail.as_deref().unwrap();
    assert!(
        detail.contains("no root-policy was measured (changes of the runs: churn, service-entry)"),
        "{detail}"
    );

    let mut renamed = run;
    for trial in &mut renamed.trials {
        let fleet = trial.drivers[0].fleet.as_mut().unwrap();
        let rename = |kind: &mut String| {
            if kind == "churn" {
                *kind = "endpoint-added".to_owned();
            }
        };
        fleet.changes.iter_mut().for_each(|change| rename(&mut change.kind));
        fleet.phases.iter_mut().for_each(|phase| rename(&mut phase.kind));
        for pushes in fleet.pushes.values_mut() {
            for counts in [&mut pushes.by_trigger, &mut pushes.bytes_by_trigger] {
                let count = counts.remove("churn").unwrap();
                counts.insert("endpoint-added".to_owned(), count);
            }
        }
    }
    let answer = &size_control_plane(&question(), &[renamed]).answers[0];
    assert!(near(answer.cpu_cores, cores_of_mesh(300.0, 1000.0, 400.0, 4.0, 0.2)), "{answer:?}");
    let change = &answer.changes[0];
    assert_eq!((change.kind.as_str(), change.measured_as.as_str()), ("churn", "endpoint-added"));
}

#[test]
fn results_of_earlier_versions_have_one_window_and_bytes_for_a_single_kind() {
    let earlier = FleetSweep { has_phases: false, has_entries: false, ..quiet() };
    let run = earlier.run(1);
    let model = costs(&run);
    assert_eq!(model.changing.residuals.len(), 24);
    assert!(model.changing.greatest_residual().unwrap() < 1e-3, "{:?}", model.changing);
    let asked = ControlPlaneQuestion { other_changes_per_s: BTreeMap::new(), ..question() };
    let answer = &size_control_plane(&asked, &[run]).answers[0];
    assert!(near(answer.cpu_cores, cores_of_mesh(300.0, 1000.0, 400.0, 4.0, 0.0)), "{answer:?}");

    let both = FleetSweep { has_entries: true, ..earlier }.run(1);
    let result = size_control_plane(&asked, &[both]);
    assert!(result.answers[0].cpu_cores.is_none(), "{result:?}");
}

#[test]
fn unresolved_costs_are_reported() {
    let ask = |question: &ControlPlaneQuestion, runs: &[MeasuredRun]| size_control_plane(question, runs);
    let good = quiet().run(1);
    let greater = ControlPlaneQuestion { services: 3000, pods: 12_000, proxies: 12_000, ..question() };
    let result = ask(&greater, std::slice::from_ref(&good));
    assert_eq!(kinds(&result), [ControlPlaneNoteKind::Extrapolated]);
    let detail = result.answers[0].notes[0].detail.as_deref().unwrap();
    assert!(detail.contains("3000 services (measured: 100 to 400)"), "{detail}");

    let mut other = good.clone();
    other.host.kernel = "6.19".to_owned();
    assert_eq!(kinds(&ask(&question(), &[good.clone(), other])), [ControlPlaneNoteKind::MixedMachines]);
    let ztunnels = ControlPlaneQuestion { kind: Some("ztunnel".to_owned()), ..question() };
    assert_eq!(kinds(&ask(&ztunnels, &[good])), [ControlPlaneNoteKind::NotMeasured]);
    let spoiled = FleetSweep { spoiled: Some("other-processes: 3 cores"), ..quiet() }.run(1);
    assert_eq!(kinds(&ask(&question(), &[spoiled])), [ControlPlaneNoteKind::NoValidTrial]);

    // Pods grow with services: their costs cannot be separated, unless the question has the same ratio.
    let together = FleetSweep {
        fleet: "proxies: [200, 600], services: [100, 400], pods: [600], churn: [0, 2/s]",
        ..quiet()
    };
    let run = together.run(1);
    let law = costs(&run).configuration;
    let question = || ControlPlaneQuestion { other_changes_per_s: BTreeMap::new(), ..question() };
    assert_eq!(law.confounded, ["visible pods"]);
    let result = ask(&question(), std::slice::from_ref(&run));
    assert_eq!(kinds(&result), [ControlPlaneNoteKind::Unresolved]);
    let as_measured = ControlPlaneQuestion { pods: 600, ..question() };
    assert!(near(
        ask(&as_measured, &[run]).answers[0].configuration_bytes,
        configuration_bytes(300.0, 600.0)
    ));

    // A mesh of a single size: answers are only possible for that size.
    let fixed = FleetSweep {
        fleet: "proxies: [200, 600], services: [300], pods: [1000], churn: [1/s, 6/s]",
        ..quiet()
    };
    let run = fixed.run(1);
    let answer = &ask(&question(), std::slice::from_ref(&run)).answers[0];
    assert!(near(answer.cpu_cores, cores_of_mesh(300.0, 1000.0, 400.0, 4.0, 0.0)), "{answer:?}");
    let result = ask(&ControlPlaneQuestion { services: 600, ..question() }, &[run]);
    assert_eq!(kinds(&result), [ControlPlaneNoteKind::Unresolved]);
    let detail = result.refusals[0].detail.as_deref().unwrap();
    assert!(detail.contains("visible services did not vary: 300 in the trials, not 600"), "{detail}");

    // No churn: the cost of a change was not measured, but memory was.
    let still = FleetSweep {
        fleet: "proxies: [200, 600], services: [100, 400], pods: [600, 1500]",
        has_entries: false,
        ..quiet()
    };
    let result = ask(&question(), &[still.run(1)]);
    let answer = &result.answers[0];
    assert!(answer.cpu_cores.is_none() && answer.memory_bytes.is_some(), "{answer:?}");
    assert!(kinds(&result).contains(&ControlPlaneNoteKind::Unresolved));

    let once = FleetSweep { repeats: 1, ..quiet() }.run(1);
    let result = ask(&question(), &[once]);
    assert!(result.answers[0].cpu_cores.unwrap().low.is_none());
    assert!(kinds(&result).contains(&ControlPlaneNoteKind::NoInterval));
}
