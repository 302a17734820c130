//! Sizes from simulated runs with known truth: intervals contain it, and answers name what a run does not
//! support.

#[path = "size/generated.rs"]
mod generated;
#[path = "size/generated_clients.rs"]
mod generated_clients;
#[path = "size/generated_run.rs"]
mod generated_run;
#[path = "size/generated_trial.rs"]
mod generated_trial;

use experiment::Experiment;
use experiment::plan::{Plan, PlannedTrial};
use generated::{ClosedLoop, OpenLoop, proxy, record, run_of, times};
use generated_clients::Clients;
use results::{
    BindingResource, ComponentUsage, DriverRecord, MachineUsage, Mode, Prices, Rates, Role, SizeAnswer,
    SizeNoteKind, SizeQuestion, SizeResult, TrialOutcome, TrialRecord, Verdict,
};
use statistics::size::{MeasuredRun, size};
use statistics::summary::summarize;

const SEEDS: u64 = 100;

fn question(target_rps: f64) -> SizeQuestion {
    SizeQuestion { target_rps, ..SizeQuestion::default() }
}

fn ask(question: &SizeQuestion, objective: &str, runs: &[MeasuredRun]) -> SizeResult {
    let objective = (!objective.is_empty()).then(|| objective.parse().expect("an objective"));
    size(question, objective, runs)
}

fn only_answer(result: &SizeResult) -> &SizeAnswer {
    assert_eq!(result.answers.len(), 1, "{:?}", result.refusals);
    &result.answers[0]
}

fn kinds(result: &SizeResult) -> Vec<SizeNoteKind> {
    let of_answers = result
        .answers
        .iter()
        .flat_map(|answer| answer.notes.iter().chain(answer.options.iter().flat_map(|option| &option.notes)));
    result.refusals.iter().chain(of_answers).map(|note| note.kind).collect()
}

fn needed(target: f64, capacity: f64) -> u64 {
    (target / capacity).ceil() as u64
}

/// Number of intervals that contain the truth.
fn covered(hits: &[bool]) -> f64 {
    hits.iter().filter(|hit| **hit).count() as f64 / hits.len() as f64
}

#[test]
fn replicas_in_closed_loop_contain_the_truth_in_90_of_100() {
    let base = ClosedLoop::default();
    let designs = [
        base.clone(),
        ClosedLoop { repeats: 3, between: 0.1, ..base.clone() },
        ClosedLoop { repeat: 0.1, ..base.clone() },
        ClosedLoop { limits: &["100m", "200m", "400m"], ..base.clone() },
        ClosedLoop { limits: &["2"], ..base.clone() },
        ClosedLoop { throttled: false, key: "proxy.cpu", mode: Mode::Sidecar, ..base },
    ];
    for design in designs {
        // Many replicas, so that rounding up to a whole number hides nothing.
        let target = 3e6;
        let mut hits: Vec<Vec<bool>> = vec![Vec::new(); design.limits.len()];
        for seed in 0..SEEDS {
            let result = ask(&question(target), "", &[design.run(seed)]);
            let answer = &result.answers[0];
            assert_eq!(answer.options.len(), design.limits.len(), "{:?}", result.refusals);
            for (option, hits) in answer.options.iter().zip(&mut hits) {
                let cores = option.cpu_limit_cores.expect("a limit");
                let truth = needed(target, design.throughput(cores));
                let (low, high) = (option.replicas.low.unwrap(), option.replicas.high.unwrap());
                hits.push((low..=high).contains(&truth));
                assert!(high < 3 * truth, "the interval says something: {low} to {high} of {truth}");
            }
        }
        for hits in hits {
            assert!(covered(&hits) >= 0.9, "{:.2} in {design:?}", covered(&hits));
        }
    }
}

#[test]
fn replicas_in_open_loop_contain_the_truth_in_90_of_100() {
    let base = OpenLoop::default();
    let designs = [
        (base.clone(), "p99=20ms"),
        (OpenLoop { repeats: 3, between: 0.2, ..base.clone() }, "p99=20ms"),
        (OpenLoop { repeat: 0.1, ..base.clone() }, "p99=8ms"),
        (OpenLoop { rates: &[500.0, 1000.0, 2000.0, 4000.0, 8000.0], ..base.clone() }, "p50=3ms,errors=1%"),
        (base, ""),
    ];
    for (design, objective) in designs {
        let target = 3e6;
        let truth = needed(target, design.capacity(objective));
        let hits: Vec<bool> = (0..SEEDS)
            .map(|seed| {
                let result = ask(&question(target), objective, &[design.run(seed)]);
                let answer = result.answers.iter().find(|answer| answer.component == "client-proxy");
                let option = &answer.unwrap_or_else(|| panic!("{:?}", result.refusals)).options[0];
                (option.replicas.low.unwrap()..=option.replicas.high.unwrap()).contains(&truth)
            })
            .collect();
        assert!(covered(&hits) >= 0.9, "{objective}: {:.2} in {design:?}", covered(&hits));
    }
}

#[test]
fn replicas_cpu_and_memory_over_clients_contain_the_truth_in_90_of_100() {
    let base = Clients::default();
    let designs = [
        base.clone(),
        Clients { repeats: 3, between: 0.1, ..base.clone() },
        Clients { mode: Mode::Ambient, component: "client-ztunnel", ..base.clone() },
        Clients { clients: &[10, 100], ..base },
    ];
    let target = 3e6;
    for (design, bound) in
        designs.iter().flat_map(|design| [(design, 9e3), (design, 15e3), (design, f64::INFINITY)])
    {
        let (objective, capacity) = match bound.is_finite() {
            true => (format!("p99={}ms", bound / 1e3), Clients::capacity(bound)),
            false => (String::new(), design.greatest()),
        };
        let count = needed(target, capacity);
        let share = target / count as f64;
        let truths = [count as f64, count as f64 * Clients::cores(share), count as f64 * 50e6];
        let mut hits = vec![Vec::new(); truths.len()];
        for seed in 0..SEEDS {
            let result = ask(&question(target), &objective, &[design.run(seed)]);
            let option = &only_answer(&result).options[0];
            let replicas = option.replicas;
            let (cpu, memory) = (option.cpu_cores.unwrap(), option.memory_bytes.unwrap());
            let ends = [
                (replicas.low.unwrap() as f64, replicas.high.unwrap() as f64),
                (cpu.low.unwrap(), cpu.high.unwrap()),
                (memory.low.unwrap(), memory.high.unwrap()),
            ];
            for ((hits, truth), (low, high)) in hits.iter_mut().zip(truths).zip(ends) {
                hits.push((low..=high).contains(&truth));
            }
        }
        let shares: Vec<f64> = hits.iter().map(|hits| covered(hits)).collect();
        assert!(shares.iter().all(|share| *share >= 0.9), "{objective}: {shares:?} in {design:?}");
    }
}

#[test]
fn answer_multiplies_measured_figures() {
    let prices = Prices { cpu_hour: 0.04, gb_hour: 0.005, per_replica_hour: 0.001, currency: "USD".into() };
    let asked = SizeQuestion { headroom: 0.3, prices: Some(prices), ..question(50_000.0) };
    let design = ClosedLoop { between: 0.0, repeat: 0.0, ..ClosedLoop::default() };
    let result = ask(&asked, "", &[design.run(1)]);
    let answer = only_answer(&result);
    for option in &answer.options {
        let cores = option.cpu_limit_cores.unwrap();
        let count = (50_000.0 / (design.throughput(cores) * 0.7)).ceil();
        assert_eq!(option.replicas.estimate as f64, count);
        assert_eq!(option.cpu_cores.unwrap().estimate, count * cores);
        let memory_gb = option.memory_bytes.unwrap().estimate / 1e9;
        assert!((memory_gb / count - 0.05).abs() < 1e-9, "the working set, whatever the rate");
        let per_hour = count * cores * 0.04 + memory_gb * 0.005 + count * 0.001;
        assert!((option.monthly_cost.unwrap().estimate - per_hour * 730.0).abs() < 1e-6);
        assert_eq!(option.binds, BindingResource::Cpu);
        assert!((option.without_one.lost - 1.0 / count).abs() < 1e-12);
        assert_eq!(option.replicas.high.map(|high| high >= option.replicas.estimate), Some(true));
    }
    assert_eq!(result.requests_per_day, 4.32e9);
    let cheapest = answer.recommendation().unwrap().monthly_cost.unwrap().estimate;
    assert!(answer.options.iter().all(|option| option.monthly_cost.unwrap().estimate >= cheapest));
    assert!(kinds(&result).contains(&SizeNoteKind::NoObjective), "{:?}", kinds(&result));
    assert!(kinds(&result).contains(&SizeNoteKind::TargetBeyondSweep));
}

#[test]
fn cpu_without_limit_is_read_at_share_of_target() {
    let design = OpenLoop { between: 0.0, repeat: 0.0, within: 0.0, ..OpenLoop::default() };
    let result = ask(&question(3000.0), "p99=20ms", &[design.run(1)]);
    assert_eq!(result.answers.len(), 2, "both sidecars");
    let option = &result.answers[0].options[0];
    assert_eq!(option.replicas.estimate, 1);
    let cores = option.cpu_cores.unwrap().estimate;
    assert!((cores - OpenLoop::cores(3000.0)).abs() < 1e-6, "{cores}");
    let small = ask(&question(100.0), "p99=20ms", &[design.run(1)]);
    assert!(kinds(&small).contains(&SizeNoteKind::BelowSweep));
}

/// Many proxies are counted together: those of the cell itself, though other topologies of the run have more.
#[test]
fn proxies_of_each_topology_are_counted_together() {
    let text = "{name: t, mesh: istio, modes: [sidecar], topology: {shape: star, width: [8, 10]}, \
                load: {rate: 100, duration: 10s}, repeats: 3}";
    let experiment = Experiment::parse(text, "test").expect("a good experiment");
    let trial = |planned: &PlannedTrial| {
        let count = planned.spec.topology.pods();
        let proxies = (0..count).map(|number| proxy(&format!("{number}-proxy"), 0.1)).collect();
        let rate = Rates { offered: Some(100.0), sent: 100.0, completed: 100.0 };
        record(planned, &Verdict::usable(), times([500.0, 600.0, 700.0], 1000.0), rate, proxies)
    };
    let run = run_of(&experiment, Plan::new(&experiment, 1).trials.iter().map(trial).collect());
    let result = ask(&question(100.0), "", &[run]);
    let answers: Vec<_> =
        result.answers.iter().map(|answer| (answer.component.as_str(), answer.proxies)).collect();
    assert_eq!(answers, [("all proxies", 10), ("all proxies", 12)]);
    for answer in &result.answers {
        let memory_bytes = answer.options[0].memory_bytes.expect("it is measured").estimate;
        assert!(
            (memory_bytes - 50e6 * answer.proxies as f64).abs() < 1.0,
            "the working sets: {memory_bytes}"
        );
    }
}

#[test]
fn concurrent_drivers_are_refused_for_proxy_size() {
    let mut run = OpenLoop::default().run(1);
    for trial in &mut run.trials {
        let driver = |name: &str| DriverRecord {
            name: name.to_owned(),
            result: trial.result.clone(),
            verdict: trial.verdict.clone(),
            ..DriverRecord::default()
        };
        trial.drivers = ["x/generator", "y/generator"].map(driver).to_vec();
    }
    let result = ask(&question(3000.0), "p99=20ms", &[run]);
    assert!(!result.is_answered() && result.refusals[0].kind == SizeNoteKind::NotMeasured, "{result:?}");
}

#[test]
fn sweep_that_ends_below_limit_has_no_upper_end() {
    let design = OpenLoop { rates: &[500.0, 1000.0], ..OpenLoop::default() };
    for objective in ["p99=20ms", ""] {
        let result = ask(&question(10_000.0), objective, &[design.run(1)]);
        let option = &result.answers[0].options[0];
        let rps = option.capacity.rps;
        assert_eq!((rps.estimate, rps.low, rps.high), (1000.0, Some(1000.0), None));
        assert_eq!((option.replicas.low, option.replicas.high), (Some(1), Some(10)));
        assert!(kinds(&result).contains(&SizeNoteKind::SweepEnded));
        assert_eq!(option.binds, BindingResource::Load);
        assert!(option.capacity.lower_bound && option.planned.upper_bound, "{option:?}");
        let command = option.next_run.as_deref().expect("a command");
        assert!(command.starts_with("meshmeter ") && command.contains("load.clients="), "{command}");
    }
}

#[test]
fn bound_of_a_sweep_that_ended_is_its_lower_end() {
    let design = Clients { clients: &[2, 5], ..Clients::default() };
    let result = ask(&question(10_000.0), "p99=900ms", &[design.run(1)]);
    let option = &only_answer(&result).options[0];
    let (rps, planned) = (option.capacity.rps, option.planned);
    assert!(planned.upper_bound && rps.low < Some(rps.estimate), "{option:?}");
    assert_eq!((rps.low, rps.high), (Some(planned.replica_rps), None));
    let remaining_rps = (planned.replicas - 1) as f64 * planned.replica_rps;
    assert_eq!(planned.without_one.remaining_rps, remaining_rps);
}

#[test]
fn capacity_that_the_replica_itself_limits_is_no_bound() {
    for (run, objective) in [(ClosedLoop::default().run(1), ""), (OpenLoop::default().run(1), "p99=20ms")] {
        let result = ask(&question(50_000.0), objective, &[run]);
        assert!(result.notes.is_empty(), "{:?}", result.notes);
        for option in result.answers.iter().flat_map(|answer| &answer.options) {
            assert!(!option.capacity.lower_bound && !option.planned.upper_bound, "{option:?}");
            assert_eq!(option.next_run, None);
        }
    }
}

#[test]
fn run_that_was_cut_short_or_interrupted_is_noted_for_the_whole_answer() {
    let whole = ClosedLoop::default().run(1);
    let note = |run: MeasuredRun| {
        let result = ask(&question(50_000.0), "", &[run]);
        assert!(result.is_answered(), "{:?}", result.refusals);
        let note = result.notes.into_iter().next().expect("a note");
        assert_eq!(note.kind, SizeNoteKind::CutShort);
        note.detail.expect("a detail")
    };
    let mut short = whole.clone();
    short.trials.truncate(15);
    let planned = whole.trials.len();
    assert_eq!(note(short), format!("{} has 15 of {planned} planned trials", whole.directory));
    let mut interrupted = whole.clone();
    interrupted.trials[3].outcome = TrialOutcome::Interrupted;
    let expected =
        format!("{} has {planned} of {planned} planned trials, one of them interrupted", whole.directory);
    assert_eq!(note(interrupted), expected);
}

/// The smaller size misses the objective; the larger one, with one trial, is not shown to.
#[test]
fn refusal_says_what_is_true_of_all_sizes() {
    let mut run = ClosedLoop { limits: &["1", "2"], ..ClosedLoop::default() }.run(1);
    let is_two =
        |trial: &TrialRecord| trial.factors.get("gateway.cpu").is_some_and(|cpu| cpu.to_string() == "2");
    run.trials.retain(|trial| trial.repeat == 0 || !is_two(trial));
    assert_eq!(kinds(&ask(&question(50_000.0), "p99=10us", &[run])), [SizeNoteKind::ObjectiveNotShown]);
}

#[test]
fn unsupported_questions_are_refused() {
    let closed = ClosedLoop::default();
    let refused = |question: &SizeQuestion, objective: &str, runs: &[MeasuredRun]| {
        let result = ask(question, objective, runs);
        assert!(!result.is_answered());
        result.refusals[0].kind
    };
    let asked = question(50_000.0);
    assert_eq!(refused(&asked, "p99=10us", &[closed.run(1)]), SizeNoteKind::ObjectiveNeverMet);
    let open = OpenLoop::default();
    assert_eq!(refused(&asked, "p99=10us", &[open.run(1)]), SizeNoteKind::ObjectiveNeverMet);
    let single = OpenLoop { repeats: 1, ..open };
    assert_eq!(refused(&asked, "p99=20ms", &[single.run(1)]), SizeNoteKind::ObjectiveNotShown);
    let spoiled =
        ClosedLoop { spoiled: Some("other-processes: others took 1.20 cores"), ..ClosedLoop::default() };
    assert_eq!(refused(&asked, "", &[spoiled.run(1)]), SizeNoteKind::NoValidTrial);
    let full = ClosedLoop {
        spoiled: Some("generator-full: the generator's busiest thread"),
        ..ClosedLoop::default()
    };
    assert_eq!(refused(&asked, "", &[full.run(1)]), SizeNoteKind::NoValidTrial);
    assert_eq!(refused(&asked, "", &[run_of(&closed.experiment(), Vec::new())]), SizeNoteKind::NoValidTrial);
    let change: [fn(&mut MeasuredRun); 6] = [
        |run| run.host.cpus = 4,
        |run| run.host.threads_per_core += 1,
        |run| run.host.memory_bytes = 8 << 30,
        |run| run.host.cpu_model = "another".to_owned(),
        |run| run.host.kernel = "6.19".to_owned(),
        |run| run.host.versions[0].version = "0.2.0".to_owned(),
    ];
    for change in change {
        let mut other = closed.run(2);
        change(&mut other);
        assert_eq!(refused(&asked, "", &[closed.run(1), other]), SizeNoteKind::MixedMachines);
    }
    let mode = SizeQuestion { mode: Some(Mode::Sidecar), ..asked.clone() };
    assert_eq!(refused(&mode, "", &[closed.run(1)]), SizeNoteKind::NotMeasured);
    let component = SizeQuestion { component: Some("waypoint".to_owned()), ..asked.clone() };
    assert_eq!(refused(&component, "", &[closed.run(1)]), SizeNoteKind::NotMeasured);
    let payload = SizeQuestion { payload_bytes: Some(4096), ..asked };
    assert_eq!(refused(&payload, "", &[closed.run(1)]), SizeNoteKind::NotMeasured);
}

/// Trials that their own CPU limit throttled and noise disturbed: of these, noise alone keeps them out.
#[test]
fn accepted_noise_answers_from_disturbed_trials_and_is_said_of_the_whole_answer() {
    let quiet = ClosedLoop::default();
    let noisy = ClosedLoop { spoiled: Some("other-processes: others took 1.20 cores"), ..quiet };
    let asked = SizeQuestion { accept_noise: true, ..question(50_000.0) };
    let result = ask(&asked, "p99=20ms", &[noisy.run(1)]);
    let without = ask(&question(50_000.0), "p99=20ms", &[quiet.run(1)]);
    assert_eq!(only_answer(&result).options.len(), only_answer(&without).options.len());
    let planned =
        |result: &SizeResult| only_answer(result).recommendation().expect("an option").planned.replicas;
    assert_eq!(planned(&result), planned(&without));
    let trials = quiet.repeats * (1 + quiet.limits.len());
    let notes: Vec<_> = result.notes.iter().map(|note| (note.kind, note.detail.as_deref())).collect();
    assert_eq!(notes, [(SizeNoteKind::NoiseAccepted, Some(&*format!("{trials} of {trials} in run")))]);
    assert!(ask(&asked, "p99=20ms", &[quiet.run(1)]).notes.is_empty(), "nothing to accept");
    let full = ClosedLoop { spoiled: Some("generator-full: the busiest thread"), ..quiet };
    assert!(!ask(&asked, "", &[full.run(1)]).is_answered(), "a full generator is not noise");
}

#[test]
fn sizes_from_several_runs_of_one_machine_are_combined() {
    let small = ClosedLoop { limits: &["1", "2"], ..ClosedLoop::default() };
    let large = ClosedLoop { limits: &["4", "8"], ..ClosedLoop::default() };
    let result = ask(&question(50_000.0), "", &[large.run(1), small.run(2)]);
    let limits: Vec<f64> =
        only_answer(&result).options.iter().filter_map(|option| option.cpu_limit_cores).collect();
    assert_eq!(limits, [1.0, 2.0, 4.0, 8.0]);
    let runs: Vec<usize> = only_answer(&result).options.iter().map(|option| option.run).collect();
    assert_eq!(runs, [1, 1, 0, 0]);
}

#[test]
fn runs_of_one_size_at_other_loads_make_one_sweep() {
    let low = OpenLoop { rates: &[1000.0, 2000.0, 4000.0], ..OpenLoop::default() };
    let high = OpenLoop { rates: &[5000.0, 6000.0, 8000.0], ..OpenLoop::default() };
    let asked = question(50_000.0);
    let result = ask(&asked, "p99=20ms", &[high.run(1), low.run(2)]);
    for answer in &result.answers {
        let [option] = &answer.options[..] else { panic!("{:?}", answer.options) };
        assert_eq!((option.run, &option.further_runs[..]), (0, &[1][..]));
        let rps = option.capacity.rps;
        assert!(rps.low < rps.high && rps.high <= Some(8000.0), "{rps:?}");
    }
    // Loads that both runs measured stay separate. So do runs under other settings, with a note.
    let repeated = ask(&asked, "p99=20ms", &[low.run(1), low.run(2)]);
    assert!(repeated.answers.iter().all(|answer| answer.options.len() == 2));
    assert!(!kinds(&repeated).contains(&SizeNoteKind::MixedSettings));
    let mut slower = high.run(1);
    slower.experiment.server.cpu_time = std::time::Duration::from_micros(50);
    let mixed = ask(&asked, "p99=20ms", &[low.run(2), slower]);
    assert!(mixed.answers.iter().all(|answer| answer.options.len() == 2));
    let notes = mixed.answers.iter().flat_map(|answer| &answer.notes);
    let settings: Vec<_> = notes.filter(|note| note.kind == SizeNoteKind::MixedSettings).collect();
    assert!(settings.iter().any(|note| note.detail.as_deref() == Some("server")), "{settings:?}");
    let mut wider = high.run(1);
    wider.experiment.load.connections = Some(1000);
    let mixed = ask(&asked, "p99=20ms", &[low.run(2), wider]);
    assert!(
        mixed.answers.iter().all(|answer| answer.options.len() == 2),
        "the same rates over other connections"
    );
    let notes = mixed.answers.iter().flat_map(|answer| &answer.notes);
    let settings: Vec<_> = notes.filter(|note| note.kind == SizeNoteKind::MixedSettings).collect();
    assert!(settings.iter().any(|note| note.detail.as_deref() == Some("load")), "{settings:?}");
}

#[test]
fn size_without_valid_trial_is_named_and_left_out() {
    let mut run = ClosedLoop::default().run(1);
    let has_four =
        |trial: &TrialRecord| trial.factors.get("gateway.cpu").is_some_and(|cpu| cpu.to_string() == "4");
    for trial in run.trials.iter_mut().filter(|trial| has_four(trial)) {
        trial.verdict.spoil("path-not-proven: no", results::Figures::all());
    }
    let result = ask(&question(50_000.0), "", &[run]);
    assert_eq!(only_answer(&result).options.len(), 3);
    assert!(kinds(&result).contains(&SizeNoteKind::SizeLeftOut));
}

#[test]
fn generator_limit_is_not_proxy_limit() {
    let design = OpenLoop { generator_full: true, ..OpenLoop::default() };
    let result = ask(&question(50_000.0), "p99=20ms", &[design.run(1)]);
    let option = &result.answers[0].options[0];
    assert_eq!(option.capacity.rps.high, None, "{option:?}");
    assert!(
        kinds(&result).contains(&SizeNoteKind::SweepEnded)
            || kinds(&result).contains(&SizeNoteKind::GeneratorLimited)
    );
}

#[test]
fn services_called_by_filters_are_named_in_notes() {
    let mut run = ClosedLoop::default().run(1);
    for trial in &mut run.trials {
        trial.components.push(ComponentUsage { role: Role::FilterService, ..proxy("ext-authz", 0.2) });
    }
    let result = ask(&question(50_000.0), "", &[run]);
    let note = only_answer(&result).notes.iter().find(|note| note.kind == SizeNoteKind::FilterServices);
    let detail = note.and_then(|note| note.detail.as_deref()).expect("the note");
    assert!(detail.starts_with("ext-authz (") && detail.ends_with(" cores per 1000 requests/s)"), "{detail}");
}

#[test]
fn published_figure_that_differs_twofold_is_a_warning() {
    let text = "{name: t, mesh: envoy, modes: gateway, load: {clients: 50}, published: {source: A study, differs: a cluster, \
                figures: [{figure: throughput-per-cpu, mode: gateway, component: gateway, value: 1k}, \
                {figure: cpu, mode: gateway, component: gateway, value: 250m}, \
                {figure: throughput-per-cpu, mode: gateway, component: waypoint, value: 1k}]}}";
    let mut run = ClosedLoop { between: 0.0, repeat: 0.0, ..ClosedLoop::default() }.run(1);
    run.experiment.published = Experiment::parse(text, "test").expect("a good experiment").published;
    let result = ask(&question(50_000.0), "", &[run]);
    let answer = only_answer(&result);
    let ratios: Vec<f64> = answer.published.iter().filter_map(|figure| figure.ratio).collect();
    assert!(matches!(ratios[..], [4.0..4.2, 0.97..0.99]), "of this proxy alone: {ratios:?}");
    let notes: Vec<_> =
        answer.notes.iter().filter(|note| note.kind == SizeNoteKind::PublishedDiffers).collect();
    let [note] = notes[..] else { panic!("one differs: {notes:?}") };
    let detail = note.detail.as_deref().expect("a detail");
    assert!(detail.ends_with("4.1 times the published 1000 requests/s"), "{detail}");
    assert!(answer.filters.contains(&"access log off".to_owned()), "{:?}", answer.filters);
    assert!(answer.programs.iter().any(|program| program.name == "envoy" && program.version == "1.40.0"));
}

#[test]
fn scaling_law_marks_values_with_full_machine() {
    let mut run = ClosedLoop::default().run(1);
    for trial in &mut run.trials {
        let has_eight = trial.factors.get("gateway.cpu").is_some_and(|cpu| cpu.to_string() == "8");
        let busy_cores = if has_eight { 7.9 } else { 4.0 };
        trial.machine = Some(MachineUsage { cpus: 8, busy_cores, ..MachineUsage::default() });
    }
    let MeasuredRun { experiment, host, trials, .. } = &run;
    let summary = summarize(experiment, 1, trials.len(), host, trials);
    let law = summary.scaling.expect("a law").main;
    let full: Vec<(f64, bool)> = law.residuals.iter().map(|one| (one.at, one.machine_full)).collect();
    assert_eq!(full, [(1.0, false), (2.0, false), (4.0, false), (8.0, true)]);
}
