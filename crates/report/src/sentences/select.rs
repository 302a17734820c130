//! Selects the sentences for each part of a report.

use results::finding::Headline;
use results::{Finding, FindingKind, FindingVerdict, Metric, StatedFinding, Summary};

/// Maximum number of findings beside the headline in the opening of a report.
const MAX_BESIDE_HEADLINE: usize = 4;

/// Kinds of findings in the opening, the most important for a reader of the headline first.
const BESIDE_HEADLINE: [FindingKind; 21] = [
    FindingKind::NotConverged,
    FindingKind::Saturation,
    FindingKind::Objective,
    FindingKind::NoisyMachine,
    FindingKind::LateGenerator,
    FindingKind::UnavailableMode,
    FindingKind::FactorCorner,
    FindingKind::FactorDifference,
    FindingKind::Order,
    FindingKind::MeshSize,
    FindingKind::FactorEffect,
    FindingKind::CpuPerRequest,
    FindingKind::AddedLatency,
    FindingKind::SlowestDriver,
    FindingKind::GreatestAddedTime,
    FindingKind::Disturbed,
    FindingKind::MachinePauses,
    FindingKind::FullMachine,
    FindingKind::ProxyUsage,
    FindingKind::Footprint,
    FindingKind::Path,
];

/// The headline and the findings beside it; the headline is `None` if the summary has no findings.
#[must_use]
pub fn opening(summary: &Summary) -> (Option<&StatedFinding>, Vec<&StatedFinding>) {
    let all = stated(summary);
    let Some((headline, beside)) = all.split_first() else { return (None, Vec::new()) };
    let of_kind = |kind: FindingKind| beside.iter().copied().filter(move |one| one.finding.kind() == kind);
    let unproven = beside.iter().copied().find(|stated| is_unproven_path(&stated.finding));
    let ranked = BESIDE_HEADLINE.into_iter().chain([FindingKind::Text]);
    let ranked = ranked.flat_map(|kind| of_kind(kind).enumerate());
    let mut ranked: Vec<(usize, &StatedFinding)> =
        ranked.filter(|(_, one)| !repeats_headline(summary, &one.text)).collect();
    // The first sentence of each kind comes before the second of any kind. After a headline about versions,
    // all differences between values come first.
    let compares_values = matches!(headline.finding, Finding::Headline(Headline::Values(_)));
    let is_first = |kind: FindingKind| compares_values && kind == FindingKind::FactorDifference;
    ranked.sort_by_key(|(of_kind, one)| if is_first(one.finding.kind()) { 0 } else { *of_kind });
    let mut chosen: Vec<&StatedFinding> = Vec::new();
    for one in unproven.into_iter().chain(ranked.into_iter().map(|(_, one)| one)) {
        if chosen.len() < MAX_BESIDE_HEADLINE && !chosen.contains(&one) {
            chosen.push(one);
        }
    }
    (Some(*headline), beside.iter().copied().filter(|one| chosen.contains(one)).collect())
}

/// Findings that are not in the opening.
#[must_use]
pub fn others(summary: &Summary) -> Vec<&StatedFinding> {
    let (headline, chosen) = opening(summary);
    let rest = stated(summary).into_iter().filter(|one| Some(*one) != headline && !chosen.contains(one));
    // The lines above the tables of drivers already state it.
    rest.filter(|one| one.finding.kind() != FindingKind::DriverObjective).collect()
}

/// Findings of these kinds that are not in the opening.
#[must_use]
pub fn about<'a>(summary: &'a Summary, kinds: &[FindingKind]) -> Vec<&'a StatedFinding> {
    let (headline, chosen) = opening(summary);
    let of_kinds = stated(summary).into_iter().filter(|one| kinds.contains(&one.finding.kind()));
    of_kinds.filter(|one| !chosen.contains(one) && Some(*one) != headline).collect()
}

/// True if a sentence only repeats what the headline's mode adds to the median.
fn repeats_headline(summary: &Summary, text: &str) -> bool {
    const MEDIAN: Metric = Metric::ResponseTimeP50Us;
    let headline = summary.findings.first().and_then(|stated| match &stated.finding {
        Finding::Headline(Headline::Added(one)) => Some((one.place.mode, one.content.value.figure)),
        Finding::Headline(Headline::Measured(one)) => Some((one.place.mode, one.content.figure)),
        Finding::Headline(Headline::Unanswered(one)) => Some((one.place.mode, one.content.figure)),
        Finding::Headline(Headline::Values(one)) => {
            Some((one.difference.place.mode, one.difference.measured.figure))
        }
        _ => None,
    });
    let repeats = |stated: &StatedFinding| match &stated.finding {
        Finding::AddedLatency(one) => Some((one.place.mode, one.content.value.figure)) == headline,
        _ => false,
    };
    headline.is_some_and(|(_, figure)| figure == MEDIAN)
        && summary.findings.iter().filter(|stated| stated.text == text).all(repeats)
}

fn is_unproven_path(finding: &Finding) -> bool {
    matches!(finding, Finding::Path(path) if path.verdict != FindingVerdict::Shown)
}

/// The first finding of each distinct text. Every cell has findings about drivers, calls and services; only those of each
/// mode's first cell are kept, which is the cell that the other findings are about.
fn stated(summary: &Summary) -> Vec<&StatedFinding> {
    let mut all: Vec<&StatedFinding> = Vec::new();
    let mut of_graph = Vec::new();
    for stated in &summary.findings {
        let kind = stated.finding.kind();
        let of_every_cell = match &stated.finding {
            Finding::SlowestDriver(driver) => Some(driver.place.mode),
            Finding::GreatestAddedTime(added) | Finding::GreatestAddedCpu(added) => Some(added.place.mode),
            _ => None,
        };
        if let Some(mode) = of_every_cell {
            if of_graph.contains(&(kind, mode)) {
                continue;
            }
            of_graph.push((kind, mode));
        }
        // The headline of streams is the finding on its mode.
        let is_kind = |one: FindingKind| {
            one == kind || (one, kind) == (FindingKind::Headline, FindingKind::AddedLatency)
        };
        let is_same = |one: &&StatedFinding| {
            is_kind(one.finding.kind()) && (&one.text, &one.detail) == (&stated.text, &stated.detail)
        };
        if !stated.text.is_empty() && !all.iter().any(is_same) {
            all.push(stated);
        }
    }
    all
}
