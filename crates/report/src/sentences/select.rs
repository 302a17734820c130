//! Selects the sentences for each part of a report.

use results::finding::Headline;
use results::{Finding, FindingKind, FindingVerdict, Metric, StatedFinding, Summary};

/// Maximum number of findings beside the headline in the opening of a report.
const MAX_BESIDE_HEADLINE: usize = 4;

/// Kinds of findings in the opening, the most important for a reader of the headline first.
const BESIDE_HEADLINE: [FindingKind; 20] = [
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
    FindingKind::MachinePauses,
    FindingKind::FullMachine,
    FindingKind::ProxyUsage,
    FindingKind::Footprint,
    FindingKind::Path,
];

/// A sentence with the kind of its findings.
type Sentence<'a> = (FindingKind, &'a str);

/// The headline and the findings beside it; the headline is `None` if the summary has no findings.
#[must_use]
pub fn opening(summary: &Summary) -> (Option<&str>, Vec<&str>) {
    let (headline, chosen) = select(summary);
    (headline, chosen.into_iter().map(|(_, text)| text).collect())
}

/// Sentences that are not in the opening.
#[must_use]
pub fn others(summary: &Summary) -> Vec<&str> {
    let (headline, chosen) = select(summary);
    let rest = sentences(summary).into_iter().filter(|sentence| !chosen.contains(sentence));
    // The lines above the tables of drivers already state it.
    let rest = rest.filter(|(kind, _)| *kind != FindingKind::DriverObjective);
    rest.map(|(_, text)| text).filter(|text| Some(*text) != headline).collect()
}

/// Sentences of these kinds that are not in the opening.
#[must_use]
pub fn about(summary: &Summary, kinds: &[FindingKind]) -> Vec<String> {
    let (headline, chosen) = select(summary);
    let of_kinds = sentences(summary).into_iter().filter(|(kind, _)| kinds.contains(kind));
    let elsewhere = of_kinds.filter(|sentence| !chosen.contains(sentence) && Some(sentence.1) != headline);
    elsewhere.map(|(_, text)| text.to_owned()).collect()
}

fn select(summary: &Summary) -> (Option<&str>, Vec<Sentence<'_>>) {
    let all = sentences(summary);
    let Some((_, headline)) = all.first().copied() else { return (None, Vec::new()) };
    let beside = &all[1..];
    let of_kind = |kind: FindingKind| beside.iter().copied().filter(move |(other, _)| *other == kind);
    let unproven = summary.findings.iter().find(|stated| is_unproven_path(&stated.finding));
    let unproven = unproven.map(|stated| (FindingKind::Path, stated.text.as_str()));
    let ranked = BESIDE_HEADLINE.into_iter().chain([FindingKind::Text]);
    let ranked = ranked.flat_map(|kind| of_kind(kind).enumerate());
    let mut ranked: Vec<(usize, Sentence<'_>)> =
        ranked.filter(|(_, (_, text))| !repeats_headline(summary, text)).collect();
    // The first sentence of each kind comes before the second of any kind. After a headline about versions,
    // all differences between values come first.
    let headline_form = summary.findings.first().map(|headline| &headline.finding);
    let compares_values = matches!(headline_form, Some(Finding::Headline(Headline::Values(_))));
    let is_first = |kind: FindingKind| compares_values && kind == FindingKind::FactorDifference;
    ranked.sort_by_key(|(of_kind, (kind, _))| if is_first(*kind) { 0 } else { *of_kind });
    let mut chosen: Vec<Sentence<'_>> = Vec::new();
    for sentence in unproven.into_iter().chain(ranked.into_iter().map(|(_, sentence)| sentence)) {
        if chosen.len() < MAX_BESIDE_HEADLINE && !chosen.contains(&sentence) {
            chosen.push(sentence);
        }
    }
    let in_order = beside.iter().copied().filter(|sentence| chosen.contains(sentence)).collect();
    (Some(headline), in_order)
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

/// Distinct sentences. Every cell has findings about drivers, calls and services; only those of each mode's
/// first cell are kept, which is the cell that the other findings are about.
fn sentences(summary: &Summary) -> Vec<Sentence<'_>> {
    let mut sentences: Vec<Sentence<'_>> = Vec::new();
    let mut of_graph = Vec::new();
    for StatedFinding { finding, text } in &summary.findings {
        let kind = finding.kind();
        let of_every_cell = match finding {
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
        let sentence = (kind, text.trim());
        if !sentence.1.is_empty() && !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    sentences
}
