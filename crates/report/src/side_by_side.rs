//! Compares two runs of the same experiment in different environments, such as the lab and a cluster: figures
//! of the cells that both have, and what differs between the environments.

use crate::RunData;
use crate::conditions::ConditionLabels;
use crate::format;
use results::{Cell, CensoredPercentiles, Clock, ComponentSummary, Estimate, Figure, Host, Metric, Role};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// Environment of runs on a cluster, as recorded in `host.json`.
const CLUSTER: &str = "cluster";
const BYTES_PER_MB: f64 = 1e6;
/// Maximum number of components per cell: if both runs have more, components are not compared one by one.
const MAX_COMPONENTS: usize = 12;

/// Inherent differences between a lab and a cluster, even on one machine.
const LAB_AND_CLUSTER: [&str; 7] = [
    "Pod network: the lab joins its network namespaces by a bridge of its own; a cluster's CNI plugin joins pods, and adds \
     routes, tunnels or rules to the way of each packet.",
    "kube-proxy: the lab has none; on a cluster, new connections to a Service pass its rules, or those of its replacement. \
     Connections that stay open pass them once.",
    "kubelet: it and the container runtime run on the nodes beside what is measured, as does the API server on a cluster of one \
     node. Containers have the limits that their objects or the mesh's injection set.",
    "Usage: the lab reads each component's CPU at both ends of the window; a cluster's kubelets sample services and proxies \
     every 10 to 30 seconds, and usage is between two of these samples.",
    "Memory: kubelets do not report resident memory. Both places report the working set, which is the memory charged to the \
     control group without what the kernel can reclaim at once, and its anonymous part.",
    "Control plane: the lab counts etcd and the API server too; on a cluster they are others'. Components are compared where \
     both runs have them.",
    "Generators: in the lab they may spin until a request is due; on a cluster they sleep, unless the experiment says otherwise.",
];

/// Two runs side by side.
#[derive(Clone, Debug, Serialize)]
pub struct SideBySide {
    /// Name of the first run's experiment.
    pub name: String,
    /// Environment of each run.
    pub environments: [String; 2],
    /// Figures of the cells that both have.
    pub rows: Vec<Row>,
    /// Cells that one of the runs lacks.
    pub unmatched: Vec<String>,
    /// Differing facts about machines, versions and experiments.
    pub differences: Vec<Difference>,
    /// Inherent differences between a lab and a cluster; empty for two runs of the same kind.
    pub explanations: Vec<&'static str>,
}

/// One figure of one cell.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Mode and load.
    pub cell: String,
    /// Name of the figure, and its component if it has one.
    pub figure: String,
    /// Unit of the estimates.
    pub unit: &'static str,
    /// Estimate of each run; `None` if it has none.
    pub estimates: [Option<Estimate>; 2],
    /// Ratio of the second estimate to the first.
    pub ratio: Option<f64>,
    /// Both estimates and their ratio as text.
    pub texts: [String; 3],
}

/// A fact that differs between the runs.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// Name of the fact.
    pub what: String,
    /// Value in each run.
    pub values: [String; 2],
}

/// Percentiles of the times that loads are about, microseconds.
const PERCENTILES: [Figure; 3] = [Figure::P50, Figure::P90, Figure::P99];

type Read = fn(&Cell) -> Option<Estimate>;

const FIGURES: [(&str, &str, Read); 4] = [
    ("added p50", "µs", |cell| cell.leading_added()?.p50),
    ("added p99", "µs", |cell| cell.leading_added()?.p99),
    ("completed", "1/s", |cell| cell.rate_completed),
    ("CPU of all proxies", "cores", |cell| Some(cell.total(Role::Proxy)?.cpu_cores)),
];

/// Figures that mean the same in both environments: name, unit, and how many of its own units that is.
const COMPONENT_FIGURES: [(&str, &str, f64, Metric); 3] = [
    ("CPU", "cores", 1.0, Metric::CpuCores),
    ("working set", "MB", BYTES_PER_MB, Metric::MemoryWorkingSetBytes),
    ("anonymous memory", "MB", BYTES_PER_MB, Metric::MemoryAnonymousBytes),
];

impl SideBySide {
    /// Compares two runs in these folders, cell by cell.
    #[must_use]
    pub fn new(runs: [&RunData; 2], folders: [&Path; 2]) -> Self {
        let [first, second] = runs;
        let cells = runs.iter().flat_map(|run| &run.summary.cells);
        let labels = ConditionLabels::new(cells.map(Cell::conditions));
        let label = |cell: &Cell| format!("{} at {}", cell.mode, labels.label(cell.conditions()));
        let environments = distinguished(runs.map(|run| environment(&run.host)), folders);
        let lacking = |run: &RunData, other: &RunData, where_else: &str| -> Vec<String> {
            let missing = run.summary.cells.iter().filter(|cell| counterpart(run, cell, other).is_none());
            missing.map(|cell| format!("{} is missing in {where_else}", label(cell))).collect()
        };
        let mut unmatched = lacking(first, second, &environments[1]);
        unmatched.extend(lacking(second, first, &environments[0]));
        let cells = first.summary.cells.iter();
        let both = cells.filter_map(|cell| Some((cell, counterpart(first, cell, second)?)));
        let is_cluster = runs.map(|run| run.host.privileges == CLUSTER);
        Self {
            name: first.summary.name.clone(),
            rows: both.flat_map(|(one, other)| rows(&label(one), one, other)).collect(),
            unmatched,
            differences: differences(runs),
            explanations: if is_cluster[0] == is_cluster[1] { Vec::new() } else { LAB_AND_CLUSTER.to_vec() },
            environments,
        }
    }
}

/// A figure of one run.
#[derive(Clone, Copy)]
struct Reading {
    estimate: Option<Estimate>,
    /// Set where it falls among requests without a response.
    unanswered: Option<CensoredPercentiles>,
}

impl From<Option<Estimate>> for Reading {
    fn from(estimate: Option<Estimate>) -> Self {
        Self { estimate, unanswered: None }
    }
}

impl Reading {
    fn of_percentile(cell: &Cell, figure: Figure) -> Self {
        let times = cell.leading_times();
        Self {
            estimate: times.and_then(|times| times.figure(figure)),
            unanswered: times.and_then(|times| times.censored(figure)),
        }
    }

    fn text(&self) -> String {
        match (&self.estimate, self.unanswered) {
            (Some(estimate), _) => format::Interval::new(estimate).text(),
            (None, Some(unanswered)) => format::above(unanswered.above_us),
            (None, None) => format::Interval::absent().text(),
        }
    }
}

/// Description of a run's environment: `Kubernetes 1.36.3 (1 Kubernetes node)`, or `lab (the CPU's name)`.
fn environment(host: &Host) -> String {
    if host.privileges == CLUSTER {
        let version = host.versions.iter().find(|version| version.name == "kubernetes");
        let version = version.map_or("of an unknown version", |version| version.version.as_str());
        format!("Kubernetes {version} ({})", host.cpu_model)
    } else {
        format!("lab ({})", host.cpu_model)
    }
}

/// Names of two runs; equal ones are followed by the name of the folder, or if these are equal too, by its path.
fn distinguished(names: [String; 2], folders: [&Path; 2]) -> [String; 2] {
    if names[0] != names[1] {
        return names;
    }
    let paths = folders.map(|folder| folder.display().to_string());
    let last = folders.map(|folder| folder.file_name().map(|name| name.to_string_lossy().into_owned()));
    let labels = match last {
        [Some(one), Some(other)] if one != other => [one, other],
        _ => paths,
    };
    [0, 1].map(|run: usize| format!("{}, {}", names[run], labels[run]))
}

/// The cell of another run that measured the same.
fn counterpart<'a>(run: &RunData, cell: &Cell, other: &'a RunData) -> Option<&'a Cell> {
    let is_shared =
        |one: &&Cell| one.mode == cell.mode && (stands_for(run, cell, one) || stands_for(other, one, cell));
    let summary = &other.summary;
    summary.cell(cell.key()).or_else(|| summary.cells.iter().find(is_shared))
}

/// True if a cell lacks only factors of its run that cannot touch its mode. Some runs measured it once per value.
fn stands_for(run: &RunData, cell: &Cell, other: &Cell) -> bool {
    let is_known = |key: &String| cell.factors.contains_key(key) || run.experiment.factor(key).is_some();
    cell.conditions().covers(other.conditions()) && other.factors.keys().all(is_known)
}

fn rows(label: &str, first: &Cell, second: &Cell) -> Vec<Row> {
    let percentiles = PERCENTILES.into_iter().filter_map(|figure| {
        let readings = [first, second].map(|cell| Reading::of_percentile(cell, figure));
        let name = Clock::of_load(&first.load).metric(figure).and_then(Metric::bound_name);
        row(label, name.unwrap_or(figure.name()).to_owned(), "µs", readings)
    });
    let of_cells = FIGURES.into_iter().filter_map(|(figure, unit, read)| {
        row(label, figure.to_owned(), unit, [read(first).into(), read(second).into()])
    });
    let of_components = components(first, second).into_iter().flat_map(|(one, other)| {
        COMPONENT_FIGURES.into_iter().filter_map(move |(figure, unit, scale, metric)| {
            let readings = [one, other].map(|component| {
                let estimate = component.estimate(metric);
                Reading::from(estimate.map(|estimate| estimate.map(|value| value / scale)))
            });
            row(label, format!("{figure} of {}", one.name), unit, readings)
        })
    });
    percentiles.chain(of_cells).chain(of_components).collect()
}

/// Services, proxies and the mesh's own components that both cells have; none if they are too many.
fn components<'a>(first: &'a Cell, second: &'a Cell) -> Vec<(&'a ComponentSummary, &'a ComponentSummary)> {
    let is_compared = |role: Role| matches!(role, Role::App | Role::Proxy | Role::ControlPlane);
    let own = first.components.iter().filter(|component| is_compared(component.role));
    let both: Vec<_> = own
        .filter_map(|one| Some((one, second.components.iter().find(|other| other.name == one.name)?)))
        .collect();
    if both.len() > MAX_COMPONENTS { Vec::new() } else { both }
}

/// Absent where neither run knows anything of the figure.
fn row(label: &str, figure: String, unit: &'static str, readings: [Reading; 2]) -> Option<Row> {
    let estimates = readings.map(|reading| reading.estimate);
    let ratio = match &estimates {
        [Some(one), Some(other)] if one.estimate > 0.0 && other.estimate > 0.0 => {
            Some(other.estimate / one.estimate)
        }
        _ => None,
    };
    let is_known = |reading: &Reading| reading.estimate.is_some() || reading.unanswered.is_some();
    let times = ratio.map(|ratio| format!("×{}", format::digits(ratio)));
    let [one, other] = readings.map(|reading| reading.text());
    readings.iter().any(is_known).then(|| Row {
        cell: label.to_owned(),
        figure,
        unit,
        texts: [one, other, times.unwrap_or_else(|| format::Interval::absent().text())],
        estimates,
        ratio,
    })
}

fn differences([first, second]: [&RunData; 2]) -> Vec<Difference> {
    let (one, other) = (facts(&first.host), facts(&second.host));
    let names: Vec<&String> = one.iter().chain(&other).map(|(name, _)| name).collect();
    let mut seen = BTreeSet::new();
    let names = names.into_iter().filter(|name| seen.insert(name.as_str()));
    let value = |facts: &[(String, String)], name: &str| {
        let values: Vec<&str> =
            facts.iter().filter(|(own, _)| own == name).map(|(_, value)| value.as_str()).collect();
        if values.is_empty() { "–".to_owned() } else { values.join(", ") }
    };
    let of_hosts =
        names.map(|name| Difference { what: name.clone(), values: [value(&one, name), value(&other, name)] });
    let mut all: Vec<Difference> = of_hosts.filter(|one| one.values[0] != one.values[1]).collect();
    all.extend(difference_of_experiments(first, second));
    all
}

/// Names and values; a component with several versions has one fact per version.
fn facts(host: &Host) -> Vec<(String, String)> {
    let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut all = vec![
        fact("CPUs", &host.cpus.to_string()),
        fact("memory", &format::size(host.memory_bytes as f64)),
        fact("kernel", &host.kernel),
        fact("distribution", &host.distribution),
        fact("usage is read from", &host.cgroups),
    ];
    all.extend(host.pacing.as_ref().map(|chosen| fact("pacing of generators", chosen.pacing.name())));
    all.extend(
        host.versions.iter().map(|version| fact(&version.name, &format::version(&version.version, false))),
    );
    all
}

/// Lines that differ between the experiments, except the seed, which each run draws.
fn difference_of_experiments(first: &RunData, second: &RunData) -> Option<Difference> {
    let lines = |run: &RunData| -> Vec<String> {
        let lines = run.experiment_yaml.lines().map(str::trim);
        lines.filter(|line| !line.starts_with("seed:")).map(str::to_owned).collect()
    };
    let (one, other) = (lines(first), lines(second));
    let only = |own: &[String], others: &[String]| -> String {
        own.iter().filter(|line| !others.contains(line)).cloned().collect::<Vec<_>>().join("; ")
    };
    let values = [only(&one, &other), only(&other, &one)];
    (values[0] != values[1]).then(|| Difference { what: "experiment".to_owned(), values })
}
