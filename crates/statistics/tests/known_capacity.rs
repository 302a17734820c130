//! Gateways of known capacity, offered 50 to 150 % of it: `scaling` and `size` state that capacity.

#[path = "size/generated_run.rs"]
mod generated_run;

use experiment::plan::{Plan, PlannedTrial};
use experiment::{Experiment, Objective};
use generated_run::{finished, normal, run_of};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use results::{
    CapacityBasis, ComponentUsage, Estimate, Figures, HistogramSummary, LoadResult, Rates, RequestCounts,
    Role, SizeQuestion, SizeResult, TrialRecord, Verdict,
};
use statistics::size::{MeasuredRun, size};
use statistics::summary::summarize;

const DURATION_S: f64 = 10.0;
const CORES: [f64; 3] = [1.0, 2.0, 4.0];
const PERCENT: [f64; 9] = [50.0, 75.0, 90.0, 99.0, 101.0, 104.0, 108.0, 115.0, 150.0];
const KEY: &str = "gateway.cpu";
/// Time of a request in an idle gateway, microseconds.
const IDLE_US: f64 = 800.0;
/// Standard deviation of the logarithm between trials: the clock of a machine.
const BETWEEN: f64 = 0.001;

/// Responses per second of a gateway with that many cores.
fn capacity(cores: f64) -> f64 {
    1000.0 * cores / (1.0 + 0.05 * (cores - 1.0))
}

/// An experiment with this load.
fn experiment(load: &str) -> Experiment {
    let text = format!(
        "{{name: t, mesh: envoy, modes: gateway, load: {{{load}, duration: 10s}}, repeats: 3, gateway: {{cpu: [1, 2, 4]}}}}"
    );
    Experiment::parse(&text, "test").expect("a good experiment")
}

/// Each capacity is offered each percentage of it, and of the others.
fn open_loop() -> Experiment {
    let of_cores = |cores: f64| PERCENT.map(|percent| (capacity(cores) * percent / 100.0).round());
    let mut rates: Vec<f64> = CORES.into_iter().flat_map(of_cores).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let rates: Vec<String> = rates.iter().map(ToString::to_string).collect();
    experiment(&format!("rate: [{}]", rates.join(", ")))
}

fn run(experiment: &Experiment) -> MeasuredRun {
    let mut random = StdRng::seed_from_u64(1);
    let plan = Plan::new(experiment, 1);
    let trials = plan.trials.iter().map(|planned| {
        let cores = planned.factors[KEY].quantity(KEY).expect("a CPU limit");
        let capacity = capacity(cores) * (BETWEEN * normal(&mut random)).exp();
        match planned.load.rate {
            Some(rate) => offered(planned, rate, capacity, cores),
            None => in_closed_loop(planned, capacity, cores),
        }
    });
    let trials = trials.collect();
    run_of(experiment, trials)
}

/// Counts and times of an open loop: completed are responses within the window. Of the backlog a tenth of the window is answered
/// after it, and the rest is never sent.
fn offered(planned: &PlannedTrial, rate: f64, capacity: f64, cores: f64) -> TrialRecord {
    let completed = rate.min(capacity);
    let backlog = (rate - completed) * DURATION_S;
    let late = backlog.min(capacity * DURATION_S / 10.0);
    let unsent = backlog - late;
    let mut verdict = Verdict::usable();
    if rate > capacity {
        let reason = format!(
            "saturated: {completed:.0}/s completed of {rate:.0}/s offered; {unsent:.0} never sent; the target did not keep up"
        );
        verdict.spoil(reason, Figures::times());
        verdict.saturated = true;
    }
    let requests = RequestCounts {
        scheduled: (rate * DURATION_S) as u64,
        sent: (rate * DURATION_S - unsent) as u64,
        late: late as u64,
        unsent: unsent as u64,
        completed: (completed * DURATION_S + late) as u64,
        ..RequestCounts::default()
    };
    let queue_us = IDLE_US / (1.0 - (completed / capacity).min(0.999));
    let wait_us = queue_us + backlog / capacity * 1e6 / 2.0;
    let rates = Rates { offered: Some(rate), sent: rate - unsent / DURATION_S, completed };
    record(planned, &verdict, rates, requests, wait_us, cores * completed / capacity)
}

fn in_closed_loop(planned: &PlannedTrial, capacity: f64, cores: f64) -> TrialRecord {
    let clients = planned.load.clients.expect("a closed loop") as f64;
    let completed = (capacity * DURATION_S) as u64;
    let requests =
        RequestCounts { scheduled: completed, sent: completed, completed, ..RequestCounts::default() };
    let rates = Rates { offered: None, sent: capacity, completed: capacity };
    record(planned, &Verdict::usable(), rates, requests, clients / capacity * 1e6, cores)
}

fn record(
    planned: &PlannedTrial,
    verdict: &Verdict,
    rate: Rates,
    requests: RequestCounts,
    time_us: f64,
    busy_cores: f64,
) -> TrialRecord {
    let times = HistogramSummary {
        count: requests.completed,
        mean: Some(time_us),
        p50: Some(time_us),
        p90: Some(2.0 * time_us),
        p99: Some(4.0 * time_us),
        max: Some(6.0 * time_us),
        ..HistogramSummary::default()
    };
    let result = LoadResult {
        duration_s: DURATION_S,
        rate,
        requests,
        response_time_us: times,
        verdict: verdict.clone(),
        ..LoadResult::default()
    };
    let gateway = ComponentUsage {
        cpu_user_s: busy_cores * DURATION_S,
        ..ComponentUsage::new("gateway", Role::Proxy, DURATION_S)
    };
    TrialRecord { result: Some(result), components: vec![gateway], ..finished(planned, verdict) }
}

fn ask(run: MeasuredRun, objective: Option<Objective>) -> SizeResult {
    size(&SizeQuestion { target_rps: 1e6, ..SizeQuestion::default() }, objective, &[run])
}

fn is_within(estimate: &Estimate, truth: f64) -> bool {
    estimate.low.is_some_and(|low| low <= truth) && estimate.high.is_some_and(|high| truth <= high)
}

/// The capacities that `size` states, by cores.
fn assert_sizes(result: &SizeResult, share: f64, basis: CapacityBasis) {
    assert_eq!(result.answers.len(), 1, "{:?}", result.refusals);
    let options = &result.answers[0].options;
    assert_eq!(options.len(), CORES.len(), "{:?}", result.refusals);
    for option in options {
        let truth = capacity(option.cpu_limit_cores.expect("a limit"));
        let stated = option.capacity.rps;
        assert!((stated.estimate / truth - 1.0).abs() <= share, "{stated:?}, not {truth}");
        assert!(is_within(&stated, truth), "{stated:?}, not {truth}");
        assert_eq!(option.capacity.basis, basis);
    }
}

/// Compares `scaling` with the capacity of each number of cores: the measured rates, and its law.
fn assert_scales(experiment: &Experiment, run: &MeasuredRun) {
    let summary = summarize(experiment, 1, run.trials.len(), &run.host, &run.trials);
    let law = summary.scaling.expect("a law").main;
    assert_eq!((law.factor.as_str(), law.residuals.len()), (KEY, CORES.len()));
    for residual in &law.residuals {
        let truth = capacity(residual.at);
        for stated in [residual.measured, residual.fitted] {
            assert!((stated / truth - 1.0).abs() <= 0.01, "{stated} with {} cores, not {truth}", residual.at);
        }
    }
    assert!(is_within(&law.parameters.lambda, capacity(1.0)), "{:?}", law.parameters);
}

#[test]
fn capacity_is_what_an_overloaded_gateway_completed() {
    let experiment = open_loop();
    let run = run(&experiment);
    assert_scales(&experiment, &run);
    assert_sizes(&ask(run, None), 0.01, CapacityBasis::Saturation);
}

#[test]
fn capacity_is_what_a_closed_loop_completed() {
    let experiment = experiment("clients: 64");
    let run = run(&experiment);
    assert_scales(&experiment, &run);
    assert_sizes(&ask(run, None), 0.01, CapacityBasis::ClosedLoop);
}

/// The rates next to the capacity are 1 % below it, which is carried, and 1 % above it.
#[test]
fn capacity_under_an_objective_lies_between_the_rates_around_it() {
    let objective = "errors=1%,p50=1s".parse().expect("an objective");
    assert_sizes(&ask(run(&open_loop()), Some(objective)), 0.02, CapacityBasis::Objective);
}
