//! `meshmeter compare --self-test`: what comparisons on this machine say of changes that are known.
//!
//! One comparison after the other, each with its own folder, as `meshmeter compare` makes them: without a change, with a server
//! that computes longer, with proxies that compute longer, and again. The first one measures the figures of which the effects
//! are a fraction. The tally is written after each comparison.

use super::arms::{Arms, repeats_within};
use super::{check_environment, compare, measured, new_folder, report_in};
use crate::cli::CompareArgs;
use crate::commands::report::{ANOTHER_FOLDER, Files, folder_failure, terminal_options, write};
use crate::commands::run::clock::SystemClock;
use crate::commands::run::on_lab::{self, OnLab};
use crate::commands::run::run_environment::RunEnvironment as _;
use crate::commands::run::{default_folder, draw_seed, provide_programs, trial_overrides};
use crate::failure::{Failure, MEASUREMENT_FAILED};
use crate::output::{self, Destination, tell};
use experiment::environment::Clock as _;
use experiment::plan::compared_cells;
use experiment::{Experiment, NoFiles, Override};
use report::folder::{Existing, RunFolder, SELF_TEST_FILE, write_self_test};
use results::units::format_duration;
use results::{
    COMPARISON_SELF_TEST_SCHEMA, Comparison, ComparisonSelfTest, Host, InjectedEffect, Metric, SelfTestSeries,
};
use statistics::comparison::{ALARM_RATE, MIN_REPEATS, self_test};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The base. Server and proxies compute in both arms: the first microseconds would also change how idle CPUs wait, and the
/// proxies' filter has a cost of its own. 1050 requests support p99.
const EXPERIMENT: &str = "{name: self-test, modes: [sidecar], server: {cpu-time: 200us}, proxy: {cpu-time: 20us}, retakes: 1, \
                          load: {rate: 500, connections: 4, warmup: 300ms, duration: 2100ms}}";
const SERVER_CPU_TIME: Duration = Duration::from_micros(200);
const PROXY_CPU_TIME: Duration = Duration::from_micros(20);
/// Proxies on the path of a request.
const PROXIES: f64 = 2.0;
/// Repeats of a comparison, unless the user sets their number.
const REPEATS: usize = 12;
/// Smallest effect that is injected, microseconds.
const MIN_EFFECT_US: f64 = 0.1;

/// Runs comparisons until the budget is spent.
pub(super) fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    check_settings(&args.trials.set)?;
    let seed = args.trials.seed.unwrap_or_else(draw_seed);
    let nothing = self_test::series(InjectedEffect::Nothing, 0.0, 0.0);
    let mut single = arms(args, &nothing, 1, seed)?;
    let most = args.repeats.map_or(REPEATS, usize::from);
    let repeats = repeats_within(args.budget(), single.plan.estimated_time(), Some(most))?;
    let folder = args.out.clone().unwrap_or_else(|| default_folder("self-test"));
    RunFolder::check(&folder, Existing::Keep)
        .map_err(|error| folder_failure(error).with_hint(ANOTHER_FOLDER))?;
    if let Some(status) = provide_programs(&single.base, &single.plan, &args.overrides, &args.releases)? {
        return Ok(status);
    }
    on_lab::enter("compare --self-test", &args.overrides, |lab| {
        let clock = SystemClock::new();
        check_environment(&single, lab)?;
        // Once for all comparisons.
        let host = measured(args, &mut single, lab)?;
        let mut test = SelfTest { args, folder, clock, host, result: empty(args, seed, repeats, nothing) };
        let ended = test.run(lab);
        let status = test.publish()?;
        ended.map(|()| status)
    })
}

/// Refuses settings that the self-test changes in its heads: given for both arms, they change the base alone.
fn check_settings(settings: &[String]) -> Result<(), Failure> {
    for setting in settings {
        let key = setting.split('=').next().unwrap_or_default().trim();
        let is_injected = |effect: &InjectedEffect| {
            let rest = effect.name().strip_prefix(key);
            *effect != InjectedEffect::Nothing
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if let Some(effect) = InjectedEffect::ALL.into_iter().find(is_injected) {
            let problem =
                format!("--set {setting}: the self-test sets {} itself, as a known effect", effect.name());
            return Err(Failure::usage(problem).with_hint("--effect sets how large the known effects are"));
        }
    }
    Ok(())
}

/// A result without comparisons.
fn empty(args: &CompareArgs, seed: u64, repeats: usize, nothing: SelfTestSeries) -> ComparisonSelfTest {
    ComparisonSelfTest {
        schema: COMPARISON_SELF_TEST_SCHEMA.to_owned(),
        seed,
        budget_s: args.budget().as_secs_f64(),
        elapsed_s: 0.0,
        repeats,
        effect: args.effect,
        alarm_rate: ALARM_RATE,
        interrupted: false,
        series: vec![nothing],
    }
}

/// The base, and a head with the change of a series.
fn arms(args: &CompareArgs, series: &SelfTestSeries, repeats: usize, seed: u64) -> Result<Arms, Failure> {
    let settings = settings(series);
    let read = |settings: &[String]| -> Result<Experiment, Failure> {
        let mut overrides = trial_overrides(&args.trials);
        overrides.push(Override::repeats(repeats.to_string()));
        overrides.extend(settings.iter().map(Override::set));
        let read = Experiment::parse_with(EXPERIMENT, "self-test", &overrides, &NoFiles);
        let read = read.map_err(|error| Failure::usage(error.render(false)))?;
        Ok(Experiment { seed: Some(seed), ..read })
    };
    let both = [read(&[])?, read(&settings)?];
    let cells = compared_cells(&both[0], &both[1], &[])
        .map_err(|reason| Failure::usage(format!("compare base and head: {reason}")))?;
    Ok(Arms::new(both, cells, [Vec::new(), settings], args.budget(), args.margin))
}

/// A self-test under way.
struct SelfTest<'a> {
    args: &'a CompareArgs,
    folder: PathBuf,
    clock: SystemClock,
    host: Host,
    result: ComparisonSelfTest,
}

impl SelfTest<'_> {
    /// Compares until no further comparison fits into the budget, or the user stops it.
    fn run(&mut self, lab: &mut OnLab) -> Result<(), Failure> {
        let stop = lab.stop_request();
        let mut longest = Duration::ZERO;
        for number in 0.. {
            let began = self.clock.now();
            let left = self.args.budget().saturating_sub(began);
            if left <= longest {
                break;
            }
            let place = number % self.result.series.len();
            let (comparison, ended) = self.compare(lab, number, place, left)?;
            let now = self.clock.now();
            self.result.elapsed_s = now.as_secs_f64();
            self.result.interrupted = stop() || ended.is_err();
            // One that time cut short before any verdict says nothing.
            if comparison.ended.is_by_itself() && comparison.looks >= MIN_REPEATS {
                longest = longest.max(now.saturating_sub(began));
                self_test::add(&mut self.result.series[place], &comparison);
                if self.result.series[place].injected == InjectedEffect::Nothing {
                    self.add_effects(&comparison);
                }
            }
            write_self_test(&self.folder, &self.result).map_err(folder_failure)?;
            if self.result.interrupted {
                return ended;
            }
        }
        Ok(())
    }

    /// Begins the series whose effects a comparison without a change has measured, unless they have begun.
    fn add_effects(&mut self, comparison: &Comparison) {
        for series in effects(comparison, self.args.effect) {
            if self.result.series.iter().all(|own| own.injected != series.injected) {
                self.result.series.push(series);
            }
        }
    }

    /// One comparison, in this time, and the failure that ended it.
    fn compare(
        &self,
        lab: &mut OnLab,
        number: usize,
        place: usize,
        left: Duration,
    ) -> Result<(Comparison, Result<(), Failure>), Failure> {
        let series = &self.result.series[place];
        let mut arms = arms(self.args, series, self.result.repeats, self.result.seed + number as u64)?;
        arms.subject.budget = left;
        self.host.pacing.iter().for_each(|chosen| arms.plan.set_pacing(chosen.pacing));
        let changed = match arms.subject.settings[1].as_slice() {
            [] => "no change".to_owned(),
            settings => settings.join(", "),
        };
        tell!("comparison {} of the machine with itself: {changed}", number + 1);
        let folder = self.folder.join(format!("{:03}-{}", number + 1, series.injected.name()));
        let folder = new_folder(&arms, Some(&folder), false)?;
        let report = report_in(folder.path())?;
        let (comparison, ended) = compare(self.args, lab, folder, &self.host, &arms, None)?;
        write(&Destination::File(report), &report::html::render_comparison(&comparison, &[]))?;
        Ok((comparison, ended))
    }

    /// Prints what was counted, however the self-test ended.
    fn publish(&self) -> Result<ExitCode, Failure> {
        let result = &self.result;
        Files::default().print(|| match self.args.json {
            true => output::json(result),
            false => report::comparison::self_test_text(result, terminal_options()),
        })?;
        tell!("self-test: {}", self.folder.join(SELF_TEST_FILE).display());
        let is_empty = result.series.iter().all(|series| series.share.is_none());
        let has_failed = result.series.iter().any(|series| self_test::exceeds(series, result.alarm_rate));
        let is_good = !(result.interrupted || is_empty || has_failed);
        Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(MEASUREMENT_FAILED) })
    }
}

/// Series of the effects that are this fraction of what the base of a comparison measured.
fn effects(comparison: &Comparison, effect: f64) -> Vec<SelfTestSeries> {
    let measured = |metric: Metric| {
        let figure = comparison.figures.iter().find(|figure| figure.key == metric)?;
        figure.base.map(|base| base.estimate).filter(|value| *value > 0.0)
    };
    let of = |injected: InjectedEffect| {
        // Time of a request in the figure, and how much of it a microsecond of the setting is.
        let (figure_us, share) = match injected {
            InjectedEffect::Nothing => return None,
            InjectedEffect::ServerCpuTime => (measured(Metric::ResponseTimeP50Us)?, 1.0),
            // A core for 1000 requests/s is a millisecond per request.
            InjectedEffect::ProxyCpuTime => (measured(Metric::ProxiesCpuCoresPer1000Rps)? * 1000.0, PROXIES),
        };
        let added_us = (figure_us * effect / share / MIN_EFFECT_US).round().max(1.0) * MIN_EFFECT_US;
        Some(self_test::series(injected, added_us, added_us * share / figure_us))
    };
    InjectedEffect::ALL.into_iter().filter_map(of).collect()
}

/// Settings of the head.
fn settings(series: &SelfTestSeries) -> Vec<String> {
    let before = match series.injected {
        InjectedEffect::Nothing => return Vec::new(),
        InjectedEffect::ServerCpuTime => SERVER_CPU_TIME,
        InjectedEffect::ProxyCpuTime => PROXY_CPU_TIME,
    };
    let added = Duration::from_nanos((series.added_us * 1000.0).round() as u64);
    vec![format!("{}={}", series.injected.name(), format_duration(before + added))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_known_effects_are_refused() {
        let check = |setting: &str| check_settings(&[setting.to_owned()]);
        for setting in ["server.cpu-time=1ms", "proxy.cpu-time=1ms", "server={cpu-time: 1ms}"] {
            assert!(format!("{:?}", check(setting).unwrap_err()).contains("the self-test sets"), "{setting}");
        }
        for setting in ["load.rate=200", "proxy.workers=2", "server.cpu-times=1ms", "serve=1"] {
            assert!(check(setting).is_ok(), "{setting}");
        }
    }

    #[test]
    fn effects_are_the_asked_fraction_of_what_was_measured() {
        let figure = |key: &str, base: f64| {
            format!(
                r#"{{"key": "{key}", "cell": {{"mode": "sidecar", "factors": {{}}, "load": {{"protocol": "http/1.1",
                "rate": 500.0, "connections": 4, "payload_bytes": 1024, "arrival": "uniform"}}}},
                "base": {{"estimate": {base}, "low": null, "high": null, "n": 4}}, "head": null, "difference": null,
                "ratio": null, "control_ratio": null, "equivalence_ratio": null, "margin": 0.03,
                "margin_source": "default", "verdict": "inconclusive", "error_rate": 0.01}}"#
            )
        };
        let comparison = |figures: &str| -> Comparison {
            let arm = r#"{"settings": [], "trials": 4, "valid": 4}"#;
            let text = format!(
                r#"{{"schema": "", "name": "t", "seed": 1, "base": {arm}, "head": {arm}, "control": {arm}, "looks": 4,
                "looks_planned": 4, "ended": "repeats", "figures": [{figures}], "environment_changes": [], "failures": [],
                "verdict": "inconclusive"}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let median = figure("response_time_p50_us", 620.0);
        let cpu = figure("proxies_cpu_cores_per_1000_rps", 0.212);
        let both = effects(&comparison(&format!("{median}, {cpu}")), 0.05);
        let heads: Vec<Vec<String>> = both.iter().map(settings).collect();
        assert_eq!(heads, [["server.cpu-time=231us"], ["proxy.cpu-time=25.3us"]]);
        assert!(both.iter().all(|series| (series.relative / 0.05 - 1.0).abs() < 0.02), "{both:?}");
        let found: Vec<_> = effects(&comparison(&cpu), 0.1).iter().map(|series| series.injected).collect();
        assert_eq!(found, [InjectedEffect::ProxyCpuTime], "no median, no fraction of it");
        assert!(settings(&self_test::series(InjectedEffect::Nothing, 0.0, 0.0)).is_empty());
    }
}
