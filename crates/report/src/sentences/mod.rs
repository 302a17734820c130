//! Sentences of findings, one function per kind.
//!
//! Read [`fill`] for how findings become text: findings that are stated together have the same text. [`mod@said`] divides a
//! text into a line and its detail; [`opening`] and [`about`] select the findings of a part of a report. Intervals are those of
//! the run: the outputs say so once.

pub(crate) mod control_plane_model;
pub mod control_plane_size;
mod corners;
mod disturbed;
mod fleets;
mod footprint;
mod graph;
mod headlines;
mod latency;
mod order;
mod resources;
mod said;
pub(crate) mod scaling;
mod select;
pub mod size;
mod sizes;
mod throughput;
mod trials;
mod validity;
mod word_factors;

pub use said::MAX_LINE;
pub use select::{about, opening, others};

use experiment::Experiment;
use experiment::file::label::{instead, setting};
use results::finding::Headline;
use results::{
    Cell, CellKey, Conditions, Estimate, FactorValue, Factors, Finding, Mode, OwnedCellKey, StatedFinding,
    Summary,
};
use said::Said;
use statistics::words;

/// Sets the texts of a summary's findings.
pub fn fill(experiment: &Experiment, summary: &mut Summary) {
    let mut texts: Vec<Said> = Vec::new();
    while let Some(rest) = summary.findings.get(texts.len()..).filter(|rest| !rest.is_empty()) {
        let (stated, said) = sentence(&Context { experiment, summary }, rest);
        texts.extend(vec![said; stated]);
    }
    for (stated, Said { line, detail }) in summary.findings.iter_mut().zip(texts) {
        (stated.text, stated.detail) = (line, detail);
    }
}

/// Data that sentences look up.
struct Context<'a> {
    experiment: &'a Experiment,
    summary: &'a Summary,
}

impl<'a> Context<'a> {
    /// A cell with its estimates.
    fn cell(&self, key: CellKey<'_>) -> Option<&'a Cell> {
        self.summary.cell(key)
    }

    /// Reason why one of these differences is not shown although its own interval excludes zero, as a sentence; empty if there
    /// is none such.
    fn chance<'e>(&self, differences: impl IntoIterator<Item = &'e Estimate>) -> String {
        let is_one = differences.into_iter().any(|difference| difference.alone.is_some());
        let tests = self.summary.tests;
        let why = || format!("Not shown: with {tests} comparisons in this run, chance is not excluded.");
        is_one.then(why).unwrap_or_default()
    }

    /// Contents of a finding without those that the headline states in its line or detail, if any others remain.
    fn beyond_headline<'g, T>(
        &self,
        group: &[&'g T],
        is_stated: impl Fn(&Headline, &T) -> bool,
    ) -> Vec<&'g T> {
        let headlines = || {
            self.summary.findings.iter().map_while(|stated| match &stated.finding {
                Finding::Headline(headline) => Some(headline),
                _ => None,
            })
        };
        let is_beyond = |one: &&&T| !headlines().any(|headline| is_stated(headline, one));
        let beyond: Vec<&T> = group.iter().filter(is_beyond).copied().collect();
        if beyond.is_empty() { group.to_vec() } else { beyond }
    }

    /// The greatest of a factor's values instead of the least, as typed in the experiment: `Proxy CPU 1 instead of 250m`.
    fn greatest_instead(&self, key: &str, ascending: &[f64]) -> String {
        let typed = |number: Option<&f64>| {
            let is_it = |value: &&FactorValue| number.is_some() && value.quantity(key) == number.copied();
            let value = self.experiment.factor(key).and_then(|factor| factor.values.iter().find(is_it));
            value.map(ToString::to_string).unwrap_or_default()
        };
        words::sentence(&instead(key, &typed(ascending.last()), &typed(ascending.first())))
    }

    /// A mode as the subject of a sentence.
    fn subject(&self, mode: Mode) -> String {
        match mode {
            Mode::None => words::mode(mode).into(),
            Mode::Gateway => "a gateway".into(),
            Mode::Sidecar if self.has_outsiders(mode) => "a sidecar in every pod of the mesh".into(),
            Mode::Sidecar if self.is_graph() => "a sidecar in every pod".into(),
            Mode::Sidecar => "a sidecar pair".into(),
            other => format!("mode {other}"),
        }
    }

    /// True for a topology with several edges.
    fn is_graph(&self) -> bool {
        self.summary.cells.iter().any(|cell| !cell.edges.is_empty())
    }

    /// True if some workloads of a graph are outside the mesh.
    fn has_outsiders(&self, mode: Mode) -> bool {
        let Experiment { topology, load, server, client_cpu_limit_cores, .. } = self.experiment;
        let topology = || topology.topology(mode, load.protocol, server, *client_cpu_limit_cores);
        self.is_graph() && topology().is_ok_and(|all| all.workloads.iter().any(|workload| !workload.in_mesh))
    }
}

/// Declares the sentence of each kind: of a finding alone, of all in a row, or of those in a row that are beside the one
/// before.
macro_rules! sentences {
    (
        $rest:expr;
        alone { $($one_kind:ident($one:ident) => $of_one:expr;)+ }
        all { $($all_kind:ident($all:ident) => $of_all:expr;)+ }
        groups { $($kind:ident($group:ident; $first:ident, $next:ident if $beside:expr) => $of_group:expr;)+ }
    ) => {
        match &$rest[0].finding {
            $(Finding::$one_kind($one) => (1, Said::from($of_one)),)+
            $(Finding::$all_kind(_) => {
                let $all = &in_a_row!($rest, $all_kind, |_, _| true)[..];
                ($all.len(), Said::from($of_all))
            })+
            $(Finding::$kind(_) => {
                let $group = &in_a_row!($rest, $kind, |$first, $next| $beside)[..];
                ($group.len(), Said::from($of_group))
            })+
            Finding::Text => (1, Said::from($rest[0].text.clone())),
        }
    };
}

/// Contents of the first findings, as long as they are of a kind and beside the one before.
macro_rules! in_a_row {
    ($rest:expr, $kind:ident, $beside:expr) => {
        take_beside(
            $rest.iter().map_while(|stated| match &stated.finding {
                Finding::$kind(content) => Some(content),
                _ => None,
            }),
            $beside,
        )
    };
}

fn take_beside<'a, T>(contents: impl Iterator<Item = &'a T>, beside: impl Fn(&T, &T) -> bool) -> Vec<&'a T> {
    let mut taken: Vec<&T> = Vec::new();
    for content in contents {
        if taken.last().is_some_and(|last| !beside(last, content)) {
            break;
        }
        taken.push(content);
    }
    taken
}

/// Number of the first findings that one text states together, and the text.
fn sentence(run: &Context<'_>, rest: &[StatedFinding]) -> (usize, Said) {
    sentences! {
        rest;
        alone {
        NotConverged(one) => fleets::not_converged(one);
        Scaling(one) => scaling::scaling(run, one);
        ControlPlaneCost(one) => control_plane_model::cost(run, one.law);
        SlowestDriver(one) => graph::slowest_driver(run, one);
        GreatestAddedTime(one) => graph::added_time(run, one);
        GreatestAddedCpu(one) => graph::added_cpu(run, one);
        RejectedUpdates(one) => footprint::rejected_updates(one);
        Saturation(one) => validity::saturation(run, one);
        DriverObjective(one) => validity::driver_objective(one);
        Path(one) => validity::path(run, one);
        CutShort(one) => trials::cut_short(*one);
        NoisyMachine(one) => trials::noisy_machine(*one);
        LateGenerator(one) => trials::late_generator(run, one);
        FewSamples(one) => validity::few_samples(one);
        }
        all {
        Headline(all) => latency::headline(run, all);
        FullMachine(all) => throughput::full_machine(all);
        CpuPerRequest(all) => throughput::cpu_per_request(all);
        ControlPlane(all) => resources::control_plane(all);
        Reservation(all) => resources::reservation(all);
        Objective(all) => validity::objective(run, all);
        ExcludedTrials(all) => trials::excluded(run, all);
        Reruns(all) => trials::reruns(run, all);
        SingleTrial(all) => validity::single_trials(all);
        Published(all) => validity::published(all);
        Disturbed(all) => disturbed::disturbed(run, all);
        }
        groups {
        MachinePauses(group; one, next if one.content.measured.figure == next.content.measured.figure) =>
            validity::machine_pauses(run, group);
        AddedLatency(group; one, next if one.place.mode == next.place.mode) => latency::added(run, group);
        ProxyUsage(group; one, next if one.place.mode == next.place.mode) => resources::proxy_usage(run, group);
        CpuScaling(group; one, next if one.place.mode == next.place.mode) => resources::cpu_scaling(run, group);
        Footprint(group; one, next if one.usage().place.mode == next.usage().place.mode) =>
            footprint::footprint(run, group);
        Convergence(group; one, next if one.place == next.place) => fleets::convergence(group, false);
        MeshSize(group; one, next if (one.mode, sizes::part(one)) == (next.mode, sizes::part(next))) =>
            sizes::mesh_size(run, group);
        FactorEffect(group; one, next if (one.mode, &one.subject) == (next.mode, &next.subject)) =>
            sizes::factor_effect(run, group);
        FactorDifference(group; one, next if (&one.place, &one.subject) == (&next.place, &next.subject)) =>
            word_factors::difference(run, group);
        FactorCorner(group; one, next if one.place == next.place) => corners::corner(run, group);
        Order(group; one, next if order::baseline(one) == order::baseline(next)) => order::order(group);
        HiddenWaiting(group; one, next if one.place == next.place) => latency::hidden_waiting(group);
        UnavailableMode(group; one, next if trials::lack(run, one) == trials::lack(run, next)) =>
            trials::unavailable_modes(run, group);
        }
    }
}

/// Conditions as the start of a sentence, such as `At 1000/s`.
fn at_first(conditions: Conditions<'_>) -> String {
    words::sentence(&words::brief_at(conditions))
}

/// A cell as the start of a sentence, such as `Sidecar at 1000/s`.
fn place(place: &OwnedCellKey) -> String {
    words::sentence(&words::brief_place(place.key()))
}

/// A mode, a load and factors in brackets, such as `(sidecar, 300/s, no access log)`.
fn bracketed(mode: Mode, conditions: Conditions<'_>) -> String {
    format!("({}, {})", words::mode(mode), words::brief(conditions))
}

/// A text with mode, load and factors in brackets, after a space. If they do not fit into the line, it has mode and factors, the
/// mode alone, or nothing in brackets, and the detail begins with the rest.
fn with_place(mode: Mode, conditions: Conditions<'_>, said: impl Fn(&str) -> Said) -> Said {
    let whole = said(&format!(" {}", bracketed(mode, conditions)));
    if whole.is_whole() {
        return whole;
    }
    let Conditions { factors, load } = conditions;
    let of_factors = factors.iter().map(|(key, value)| setting(key, value));
    let with_factors: Vec<String> = std::iter::once(words::mode(mode).to_owned()).chain(of_factors).collect();
    let load = at_first(Conditions { factors: &Factors::new(), load });
    let all = words::sentence(&words::brief_place(CellKey { mode, conditions }));
    let shorter = [
        (format!(" ({})", with_factors.join(", ")), &load),
        (format!(" ({})", words::mode(mode)), &all),
        (String::new(), &all),
    ];
    let mut shorter = shorter.into_iter().map(|(at, rest)| (said(&at), rest));
    let found = shorter.find(|(said, _)| said.is_whole());
    found.map_or(whole, |(said, rest)| said.beginning_with(&format!("{rest}.")))
}

/// A text that begins with its conditions. If its first clause does not fit into the line with them, they begin the detail.
fn with_conditions(conditions: Conditions<'_>, text: &str) -> Said {
    let at = at_first(conditions);
    let whole = Said::from(format!("{at} {text}."));
    match whole.is_whole() {
        true => whole,
        false => Said::from(format!("{}.", words::sentence(text))).beginning_with(&format!("{at}.")),
    }
}

/// A text about a cell. If its first clause does not fit into the line behind the cell, the line has the mode, and the detail begins
/// with the conditions.
fn of_cell(cell: &OwnedCellKey, said: impl Fn(&str) -> Said) -> Said {
    let whole = said(&place(cell));
    match whole.is_whole() {
        true => whole,
        false => said(&words::sentence(words::mode(cell.mode)))
            .beginning_with(&format!("{}.", at_first(cell.conditions()))),
    }
}

/// Factors with their values, such as `no access log and mTLS strict`.
fn settings(factors: &Factors) -> String {
    words::list(&factors.iter().map(|(key, value)| setting(key, value)).collect::<Vec<_>>())
}

/// A difference as `0.3 ms (0.1–0.5) higher`, or `lower` if it is negative.
fn higher_or_lower(difference: &Estimate, text: impl Fn(&Estimate) -> String) -> String {
    if difference.estimate < 0.0 {
        format!("{} lower", text(&difference.map_reversed(std::ops::Neg::neg)))
    } else {
        format!("{} higher", text(difference))
    }
}

#[cfg(test)]
mod tests;
