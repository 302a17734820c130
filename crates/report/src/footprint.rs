//! Configuration and memory of proxies as a table: the same rows for the terminal and for HTML.
//!
//! A mode's configuration is the same under every load, and memory hardly depends on the load. Only the
//! highest load with a valid trial is shown, per mode and per value of the factors other than those of the
//! load. The other loads are in the table of all figures. Identical proxies in several namespaces share a
//! row, with medians and their range.

use crate::conditions::ConditionLabels;
use crate::drivers::over_copies_estimate;
use crate::format::{self, Interval, SizeUnit, TimeUnit};
use experiment::file::label::setting;
use results::{
    BACKGROUND_SERVICES, Cell, ComponentSummary, ConfigurationSummary, Estimate, FactorValue, Factors,
    Metric, Mode, Role, Summary,
};
use statistics::copies::{ComponentGroup, groups_of};
use std::ops::RangeInclusive;

/// Configuration and memory of a run's proxies.
#[derive(Clone, Debug)]
pub struct FootprintTable {
    /// Unit of every configuration size.
    pub size_unit: SizeUnit,
    /// Unit of every memory figure.
    pub memory_unit: SizeUnit,
    /// Unit of every propagation time.
    pub time_unit: TimeUnit,
    /// Kinds of objects that any proxy's configuration counts.
    pub kinds: Vec<&'static str>,
    /// True if proxies were configured while they ran.
    pub times: bool,
    /// Proxies by mode, in the order of the path, then the components that configure them.
    pub rows: Vec<FootprintRow>,
    /// Caveats: rejected updates, counts that vary, figures that could not be read.
    pub warnings: Vec<String>,
}

/// One component, or several identical ones.
#[derive(Clone, Debug)]
pub struct FootprintRow {
    /// Deployment mode.
    pub mode: Mode,
    /// Load of the cell.
    pub load: String,
    /// Values of the factors that its memory may depend on.
    pub factors: Factors,
    /// Its name; for several, their common name and number.
    pub name: String,
    /// True if the row combines several components.
    pub is_of_several: bool,
    /// Role of the component.
    pub role: Role,
    /// Size of its configuration.
    pub size: Option<Interval>,
    /// Count of each kind of the table, with minimum and maximum over several components. `None` for a kind
    /// that it does not count.
    pub counts: Vec<Option<RangeInclusive<u64>>>,
    /// Sort of proxy, by the kinds that it counts.
    pub sort: Sort,
    /// Memory before the load.
    pub before: MemoryAt,
    /// Memory under load.
    pub under: MemoryAt,
    /// Memory after the load.
    pub after: MemoryAt,
    /// Propagation time: from writing an object until the proxy uses the configuration.
    pub configured_in: Option<Interval>,
    /// Propagation time of a further domain of a gateway.
    pub further_domain_in: Option<Interval>,
}

/// Memory at one moment.
#[derive(Clone, Copy, Debug)]
pub struct MemoryAt {
    /// All memory of its processes, including file pages, in bytes.
    pub all_bytes: Option<Estimate>,
    /// Anonymous memory in bytes.
    pub anonymous_bytes: Option<Estimate>,
}

/// Sort of proxy, by what it counts. A component without counts is treated as Envoy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sort {
    /// Counts clusters, listeners, routes.
    Envoy,
    /// Counts services, workloads, policies.
    Ztunnel,
}

impl Sort {
    fn from_configuration(configuration: Option<&ConfigurationSummary>) -> Self {
        match configuration {
            Some(held) if held.counts.workloads.is_some() => Self::Ztunnel,
            _ => Self::Envoy,
        }
    }
}

impl FootprintRow {
    /// The mode and the factors: `sidecar among 200 background services`, `sidecar, 2 workers`.
    #[must_use]
    pub fn place(&self) -> String {
        let factor = |place: String, (key, value): (&String, &FactorValue)| match key.as_str() {
            BACKGROUND_SERVICES => format!("{place} among {value} background services"),
            _ => format!("{place}, {}", setting(key, value)),
        };
        self.factors.iter().fold(self.mode.name().to_owned(), factor)
    }
}

impl FootprintTable {
    /// The table of a run; `None` if no proxy reports its configuration or memory.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let shown = shown(summary);
        shown.iter().any(|(_, group)| group.role == Role::Proxy).then_some(())?;
        let components = || shown.iter().flat_map(|(_, group)| group.components.iter().copied());
        let configurations = || components().filter_map(|component| component.configuration.as_ref());
        let memory = components()
            .flat_map(|component| MOMENTS.into_iter().filter_map(|[all, _]| component.estimate(all)));
        let table = Self {
            size_unit: SizeUnit::for_sizes(configurations().map(|held| held.size_bytes.estimate)),
            memory_unit: SizeUnit::for_sizes(memory.map(|memory| memory.estimate)),
            time_unit: TimeUnit::for_times(
                components()
                    .filter_map(|component| Some(component.estimate(Metric::ConfiguredInS)?.estimate * 1e6)),
            ),
            kinds: kinds(configurations()),
            times: components().any(|component| component.estimate(Metric::ConfiguredInS).is_some()),
            rows: Vec::new(),
            warnings: shown.iter().flat_map(|(cell, group)| warnings(cell, group)).collect(),
        };
        let labels = ConditionLabels::new(summary.cells.iter().map(Cell::conditions));
        let rows = shown.iter().map(|(cell, group)| table.row(cell, group, &labels)).collect();
        Some(Self { rows, ..table })
    }

    /// The sorts of proxies in the table, with the kinds that any proxy of the sort counts: their column
    /// index and name.
    #[must_use]
    pub fn sorts(&self) -> Vec<(Sort, Vec<(usize, &'static str)>)> {
        let counted = |sort| {
            let is_counted = move |kind: &(usize, &str)| {
                self.rows.iter().any(|row| row.sort == sort && row.counts[kind.0].is_some())
            };
            self.kinds.iter().copied().enumerate().filter(is_counted).collect::<Vec<_>>()
        };
        let sorts = [Sort::Envoy, Sort::Ztunnel].into_iter().map(|sort| (sort, counted(sort)));
        sorts.filter(|(_, kinds)| !kinds.is_empty()).collect()
    }

    fn row(&self, cell: &Cell, group: &ComponentGroup<'_>, labels: &ConditionLabels) -> FootprintRow {
        let size = |size_bytes: Estimate| {
            let size = Interval::scaled(&size_bytes, 1.0 / self.size_unit.bytes());
            // The interval has no width in the displayed digits.
            let constant = format!("{0}–{0}", size.estimate);
            Interval { range: size.range.filter(|range| *range != constant), ..size }
        };
        let each = |metric: Metric| {
            over_copies_estimate(group.components.iter().map(|component| component.estimate(metric)))
        };
        let [before, under, after] = MOMENTS
            .map(|[all, anonymous]| MemoryAt { all_bytes: each(all), anonymous_bytes: each(anonymous) });
        let counts = |kind: &&'static str| {
            let configurations = group.components.iter().map(|component| component.configuration.as_ref());
            let counts = || configurations.clone().filter_map(|configuration| count(configuration, kind));
            Some(counts().min()?..=counts().max()?)
        };
        let time = |time_s: Option<Estimate>| time_s.map(|time| self.time_unit.interval(&in_us(&time)));
        FootprintRow {
            mode: cell.mode,
            load: labels.label(cell.conditions()),
            factors: held_factors(cell),
            name: label(group),
            is_of_several: group.components.len() > 1,
            role: group.role,
            size: each(Metric::ConfigurationSizeBytes).map(size),
            counts: self.kinds.iter().map(counts).collect(),
            sort: Sort::from_configuration(group.components[0].configuration.as_ref()),
            before,
            under,
            after,
            configured_in: time(each(Metric::ConfiguredInS)),
            further_domain_in: time(each(Metric::FurtherDomainInS)),
        }
    }
}

/// `a-proxy ×50`, or the name of a single component.
pub(crate) fn label(group: &ComponentGroup<'_>) -> String {
    match group.components.len() {
        1 => group.name.clone(),
        copies => format!("{} ×{copies}", group.name),
    }
}

/// `12`, or `12–40` for several that differ.
pub(crate) fn count_text(counts: &RangeInclusive<u64>) -> String {
    let [least, greatest] = [counts.start(), counts.end()].map(|count| format::count(*count));
    if least == greatest { least } else { format!("{least}–{greatest}") }
}

/// Converts a time in seconds to microseconds.
pub(crate) fn in_us(time_s: &Estimate) -> Estimate {
    time_s.map(|seconds| seconds * 1e6)
}

/// Memory before, under and after the load, and the anonymous part of it.
const MOMENTS: [[Metric; 2]; 3] = [
    [Metric::MemoryBeforeLoadBytes, Metric::MemoryAnonymousBeforeLoadBytes],
    [Metric::MemoryBytes, Metric::MemoryAnonymousBytes],
    [Metric::MemoryAfterLoadBytes, Metric::MemoryAnonymousAfterLoadBytes],
];

/// Factors other than those of the load: what a proxy holds hardly depends on the load.
fn held_factors(cell: &Cell) -> Factors {
    let others = cell.factors.iter().filter(|(key, _)| !key.starts_with("load."));
    others.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Per mode and values of the factors: the proxies and what configures them, under the highest load with a
/// valid trial.
fn shown(summary: &Summary) -> Vec<(&Cell, ComponentGroup<'_>)> {
    let mut places: Vec<(Mode, Factors)> = Vec::new();
    for cell in &summary.cells {
        let place = (cell.mode, held_factors(cell));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places.sort_by_key(|(mode, _)| *mode);
    let cells = places.into_iter().filter_map(|(mode, factors)| {
        let is_there = |cell: &&Cell| cell.mode == mode && held_factors(cell) == factors;
        summary.cells.iter().rfind(|cell| is_there(cell) && cell.components.iter().any(says))
    });
    cells
        .flat_map(|cell| {
            let of = move |role| {
                let components = cell.components.iter();
                let components = components.filter(|component| component.role == role && says(component));
                groups_of(cell, components.collect()).into_iter()
            };
            of(Role::Proxy).chain(of(Role::ControlPlane)).map(move |group| (cell, group))
        })
        .collect()
}

/// True if the component was queried for what it holds.
pub(crate) fn says(component: &ComponentSummary) -> bool {
    let asked = component.configuration.is_some()
        || component.estimate(Metric::MemoryBeforeLoadBytes).is_some()
        || !component.unread.is_empty();
    asked && matches!(component.role, Role::Proxy | Role::ControlPlane)
}

/// The kinds that any of the configurations has.
fn kinds<'a>(configurations: impl Iterator<Item = &'a ConfigurationSummary>) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    for configuration in configurations {
        for (index, (kind, count)) in configuration.counts.held().into_iter().enumerate() {
            if count.is_some() && !kinds.contains(&(index, kind)) {
                kinds.push((index, kind));
            }
        }
    }
    kinds.sort_unstable();
    kinds.into_iter().map(|(_, kind)| kind).collect()
}

fn count(configuration: Option<&ConfigurationSummary>, kind: &str) -> Option<u64> {
    configuration?.counts.held().into_iter().find(|(name, _)| *name == kind)?.1
}

/// Warnings about components, each warning once for all components that have it.
fn warnings(cell: &Cell, group: &ComponentGroup<'_>) -> Vec<String> {
    let mut warnings: Vec<(String, Vec<&str>)> = Vec::new();
    for component in &group.components {
        for warning in warnings_of(component) {
            match warnings.iter_mut().find(|(known, _)| *known == warning) {
                Some((_, names)) => names.push(&component.name),
                None => warnings.push((warning, vec![&component.name])),
            }
        }
    }
    let sentence = |(warning, names): (String, Vec<&str>)| {
        let who = match names.as_slice() {
            [first, second, _, ..] => format!("{first}, {second} and {} more", names.len() - 2),
            few => few.join(" and "),
        };
        format!("{who} of {}{warning}", cell.mode)
    };
    warnings.into_iter().map(sentence).collect()
}

/// Text that continues after the component's name.
fn warnings_of(component: &ComponentSummary) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(configuration) = &component.configuration {
        if let Some(refused) = configuration.counts.rejected_updates.filter(|refused| *refused > 0) {
            warnings.push(format!(
                " rejected {}: its configuration is not the one that it was sent.",
                format::counted(refused, "update", "updates")
            ));
        }
        if configuration.varies {
            warnings.push(" had different counts in some trials; the greatest are shown.".to_owned());
        }
    }
    warnings.extend(component.unread.iter().map(|reason| format!(", not read: {reason}")));
    warnings
}
