//! Where and how the run was measured, and how to repeat it.

use super::asked;
use super::context::Context;
use super::nodes::nodes;
use crate::calibration::{run_resolution, sentences};
use crate::format::{self, TimeUnit};
use experiment::Experiment;
use experiment::environment::AccessLog;
use experiment::mesh_settings::ZtunnelPlacement;
use results::{
    Cell, ComponentVersion, Floor, LoadResult, Mode, Pauses, ProxyBuild, ProxySetup, RetakeSummary,
};
use serde::Serialize;
use statistics::is_excluded;
use std::collections::BTreeSet;

/// The machine and the versions.
#[derive(Debug, Serialize)]
pub struct Machine {
    facts: Vec<Fact>,
    versions: Vec<Fact>,
    floor: Vec<Fact>,
}

/// A name and a value.
#[derive(Debug, Serialize)]
struct Fact {
    name: String,
    value: String,
}

impl Fact {
    fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

impl Machine {
    pub fn new(context: &Context) -> Self {
        let host = &context.run.host;
        let mut facts = vec![
            Fact::new("CPU", format!("{} ({})", host.cpu_model, host.architecture)),
            Fact::new(
                "CPUs online",
                format!(
                    "{}, {} per core",
                    host.cpus,
                    format::counted(host.threads_per_core as u64, "thread", "threads")
                ),
            ),
            Fact::new("Memory", format::size(host.memory_bytes as f64)),
            Fact::new("Kernel", &host.kernel),
            Fact::new("Distribution", &host.distribution),
            Fact::new("Virtual machine", host.virtualization.as_deref().unwrap_or("none seen")),
            Fact::new("cgroups", &host.cgroups),
            Fact::new("Lab run as", &host.privileges),
        ];
        if !host.redirect_by.is_empty() {
            facts.push(Fact::new("Proxy traffic identified by", &host.redirect_by));
        }
        facts.extend(host.pacing.as_ref().map(|chosen| {
            Fact::new(
                "Generators wait by",
                format!("{} pacing in every trial: {}", chosen.pacing.name(), chosen.reason),
            )
        }));
        facts.extend(machine_in_trials(context));
        facts.extend(nodes(&context.run.trials).into_iter().map(|(name, text)| Fact::new(name, text)));
        let text = |version: &ComponentVersion| match &host.build {
            Some(build) if version.name == "meshmeter" => build.describe(),
            _ => version_text(version),
        };
        let versions = host.versions.iter().map(|version| Fact::new(&version.name, text(version))).collect();
        Self { facts, versions, floor: floor_and_calibration(context) }
    }
}

/// The version, the first digits of the program's digest, or of that of the image that it came from, and the source of a
/// program other than the installed one.
fn version_text(version: &ComponentVersion) -> String {
    let mut parts = vec![format::version(&version.version, version.sha256.is_some())];
    parts.extend(
        version.sha256.as_deref().map(|digest| format!("SHA-256 {}", format::shortened_digest(digest))),
    );
    parts.extend(version.image.as_ref().map(|image| {
        let digest = image.index_digest.as_ref().unwrap_or(&image.manifest_digest);
        let digest = digest.strip_prefix("sha256:").unwrap_or(digest);
        // One hash is enough: that of the program, if it is known.
        match version.sha256 {
            Some(_) => format!("from {}", image.reference),
            None => format!("from {}, digest {}", image.reference, format::shortened_digest(digest)),
        }
    }));
    let absent = version.in_place_of.as_deref();
    parts.extend(
        absent.map(|release| format!("the pinned one, since release {release} could not provide it")),
    );
    parts.extend(version.named_by.as_deref().map(|by| {
        let path = version.path.as_deref().unwrap_or_default();
        match by {
            "option" => format!("not the installed one: {path}, named by an option"),
            "variable" => format!("not the installed one: {path}, named by a variable of the environment"),
            _ => format!("found in PATH: {path}"),
        }
    }));
    parts.join("; ")
}

/// What the rest of the machine did during the valid trials.
fn machine_in_trials(context: &Context) -> Vec<Fact> {
    let seen: Vec<_> = context
        .run
        .trials
        .iter()
        .filter(|trial| !is_excluded(trial))
        .filter_map(|trial| trial.machine.as_ref())
        .collect();
    if seen.is_empty() {
        return Vec::new();
    }
    let mean = |figures: Vec<f64>| format::cores(figures.iter().sum::<f64>() / figures.len() as f64);
    vec![
        Fact::new(
            "Other processes during trials",
            mean(seen.iter().map(|machine| machine.other_processes_cores).collect()),
        ),
        Fact::new(
            "Stolen by the hypervisor during trials",
            mean(seen.iter().map(|machine| machine.steal_cores).collect()),
        ),
    ]
}

fn floor_and_calibration(context: &Context) -> Vec<Fact> {
    let host = &context.run.host;
    let mut facts = host.noise_floor.as_ref().map(floor).unwrap_or_default();
    if let Some(calibration) = &host.calibration {
        let experiment = &context.run.experiment;
        let sentences = sentences(calibration);
        facts.push(Fact::new("Calibrated", &calibration.made_at));
        let resolved = run_resolution(calibration, experiment.repeats, experiment.load.duration);
        facts.extend(resolved.map(|text| Fact::new("This run resolves", text)));
        facts.extend(sentences.iter().map(|sentence| Fact::new("Calibration", sentence)));
    }
    facts
}

fn pauses(pauses: &Pauses) -> Option<Fact> {
    let seen = pauses.overall()?;
    let text = if seen.notable_per_s > 0.0 {
        let (rate, longest_ms) = (seen.notable_per_s, seen.longest_us / 1000.0);
        format!("{rate:.1} per second of 0.1 ms or more on each CPU, the longest {longest_ms:.1} ms")
    } else {
        "none of 0.1 ms or more".to_owned()
    };
    Some(Fact::new("Pauses of a spinning thread", text))
}

fn floor(floor: &Floor) -> Vec<Fact> {
    let times = [
        floor.timer_late_p50_us,
        floor.timer_late_p99_us,
        floor.loopback_round_trip_p50_us,
        floor.loopback_round_trip_p99_us,
    ];
    let unit = TimeUnit::for_times(times);
    let pair = |p50_us: f64, p99_us: f64| format!("p50 {}, p99 {}", unit.time(p50_us), unit.time(p99_us));
    let facts = vec![
        Fact::new("A timer wakes late by", pair(times[0], times[1])),
        Fact::new("A byte on loopback and back", pair(times[2], times[3])),
        Fact::new("The same work, timed again and again, varies by", format::percent(floor.noise_fraction)),
        Fact::new("Stolen by the hypervisor meanwhile", format::cores(floor.steal_cores)),
    ];
    facts.into_iter().chain(floor.pauses.as_ref().and_then(pauses)).collect()
}

/// What a reader needs to know to interpret the figures.
#[derive(Debug, Serialize)]
pub struct Method {
    /// What all loads have in common.
    shared_load: String,
    /// Setup of the proxies, as text.
    proxies: String,
    /// Settings of the control plane; empty if all are defaults.
    asked: String,
    /// Settings that slow down service and proxies; empty if there are none.
    held_back: String,
    /// Statuses of responses that are not errors, if the experiment says which.
    expected_status: Option<String>,
    /// True if any cell has an open loop.
    open_loop: bool,
    /// True if any cell has a closed loop.
    closed_loop: bool,
    /// True if any cell has a fleet in place of a load.
    fleet: bool,
    /// Times that figures are of, unless they say otherwise.
    times: &'static str,
    /// Length of the measured window.
    window: Option<String>,
    repeats: usize,
    /// Rules and number of reruns.
    retakes: Option<RetakeSummary>,
    compares: bool,
}

impl Method {
    pub fn new(context: &Context) -> Self {
        let results = || context.run.trials.iter().filter_map(|trial| trial.result.as_ref());
        let longest = results().map(|result: &LoadResult| result.duration_s).reduce(f64::max);
        Self {
            shared_load: context.conditions.shared(),
            proxies: proxies(context),
            asked: asked::of_control_plane(&context.run.experiment, &context.modes),
            held_back: asked::of_service(&context.run.experiment),
            expected_status: context
                .run
                .experiment
                .load
                .expected_status
                .as_ref()
                .map(|expected| expected.to_string().replace(',', ", ")),
            open_loop: context.conditions.all().any(|at| at.load.rate.is_some()),
            closed_loop: context.conditions.all().any(|at| at.load.rate.is_none() && !at.load.is_fleet()),
            fleet: context.conditions.all().any(|at| at.load.is_fleet()),
            times: match context.conditions.all().any(|at| at.load.stream.is_some()) {
                true => "times to the first token, from the intended start too,",
                false => "response times",
            },
            window: longest.map(format::duration),
            repeats: context.run.trials.iter().map(|trial| trial.repeat + 1).max().unwrap_or(0),
            retakes: context.run.summary.retakes,
            compares: context.run.summary.cells.iter().any(|cell| cell.added_us.is_some()),
        }
    }
}

/// Setup of the proxies; empty if no mode has one.
fn proxies(context: &Context) -> String {
    let experiment = &context.run.experiment;
    if context.modes.iter().all(|mode| matches!(mode, Mode::None | Mode::ControlPlane)) {
        return String::new();
    }
    let builds = builds(&context.run.summary.cells).into_iter();
    let settings = asked::of_all_values(experiment, |one| proxy_settings(one, &context.modes));
    builds.chain([settings]).collect::<Vec<_>>().join(", ")
}

fn proxy_settings(experiment: &Experiment, modes: &[Mode]) -> Vec<String> {
    let mut parts = vec![
        format::counted(experiment.proxy.workers as u64, "worker thread", "worker threads"),
        match experiment.proxy.access_log {
            AccessLog::Off => "no access log".to_owned(),
            AccessLog::Text => "access log as text".to_owned(),
            AccessLog::Json => "access log as JSON".to_owned(),
        },
    ];
    // The name of each egress mode says whether it uses mutual TLS.
    if modes.iter().any(|mode| !mode.is_egress() && *mode != Mode::None) {
        parts.push(format!("mutual TLS between them: {}", experiment.proxy.mtls.name()));
    }
    if modes.iter().any(|mode| mode.is_ambient()) {
        parts.push(match experiment.istio.ztunnel {
            ZtunnelPlacement::Shared => {
                "one ztunnel for both pods, as on one node: its CPU and memory are those of both sides"
                    .to_owned()
            }
            ZtunnelPlacement::PerPod => "a ztunnel in each pod".to_owned(),
        });
    }
    parts
}

/// Envoy builds that the control plane configured, and whether Istio's telemetry was on; `None` if it
/// configured none.
fn builds(cells: &[Cell]) -> Option<String> {
    let setups: BTreeSet<ProxySetup> = cells.iter().filter_map(|cell| cell.proxies).collect();
    let describe = |setup: ProxySetup| match (setup.build, setup.telemetry) {
        (ProxyBuild::Upstream, _) => {
            "upstream’s build of Envoy in place of Istio’s (no telemetry, metadata or ALPN filters)"
        }
        (ProxyBuild::Istio, true) => "Istio’s own build of Envoy with its telemetry",
        (ProxyBuild::Istio, false) => "Istio’s own build of Envoy without telemetry",
    };
    let described: Vec<&str> = setups.into_iter().map(describe).collect();
    (!described.is_empty()).then(|| described.join(", in other cells "))
}

/// How to repeat the run.
#[derive(Debug, Serialize)]
pub struct Repeat {
    seed: u64,
    experiment_yaml: String,
}

impl Repeat {
    pub fn new(context: &Context) -> Self {
        Self { seed: context.run.summary.seed, experiment_yaml: context.run.experiment_yaml.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{ComponentImage, Summary};

    #[test]
    fn every_proxy_build_is_described() {
        let text = include_str!("../../../tests/fixture/summary.json");
        let summary: Summary = serde_json::from_str(text).expect("the kept summary is good");
        let of = |setups: &[(ProxyBuild, bool)]| {
            let cells: Vec<Cell> = setups
                .iter()
                .map(|(build, telemetry)| Cell {
                    proxies: Some(ProxySetup { build: *build, telemetry: *telemetry }),
                    ..summary.cells[0].clone()
                })
                .collect();
            builds(&cells)
        };
        let (on, off) = ((ProxyBuild::Istio, true), (ProxyBuild::Istio, false));
        let mixed = "Istio’s own build of Envoy without telemetry, in other cells Istio’s own build of Envoy with its telemetry";
        assert_eq!(of(&[on, off, on]).as_deref(), Some(mixed));
        let upstream = of(&[(ProxyBuild::Upstream, false)]).expect("it stands in");
        assert!(upstream.starts_with("upstream’s build of Envoy in place of Istio’s"), "{upstream}");
        assert_eq!(builds(&summary.cells), None, "results of earlier versions do not say");
    }

    #[test]
    fn versions_name_source_of_program() {
        let digest = |letter: &str| format!("sha256:{}", letter.repeat(64));
        let pulled = ComponentVersion {
            name: "istiod".to_owned(),
            version: "1.30.4".to_owned(),
            image: Some(ComponentImage {
                reference: "hub.example/istio/pilot:1.30.4".to_owned(),
                index_digest: Some(digest("a")),
                manifest_digest: digest("b"),
            }),
            ..ComponentVersion::default()
        };
        let short = format::shortened_digest(&"a".repeat(64));
        assert_eq!(
            version_text(&pulled),
            format!("1.30.4; from hub.example/istio/pilot:1.30.4, digest {short}")
        );
        let pinned = ComponentVersion { image: None, in_place_of: Some("1.30.4".to_owned()), ..pulled };
        assert_eq!(
            version_text(&pinned),
            "1.30.4; the pinned one, since release 1.30.4 could not provide it"
        );
    }
}
