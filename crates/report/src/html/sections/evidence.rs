//! Path verification by the proxies' own counters, and published figures.

use super::context::Context;
use super::filters::{self, FilterRow};
use crate::format;
use results::{CellKey, HopProof, HopProtocol, Mode, ProxyProof, PublishedFigure, TrialRecord};
use serde::Serialize;
use statistics::copies::{CopyNames, MAX_UNFOLDED, grouped, local_name};
use statistics::is_excluded;
use std::collections::HashMap;

/// Counters of the proxies.
#[derive(Debug, Serialize)]
pub struct PathSection {
    rows: Vec<PathRow>,
    /// Every proxy, if rows of `rows` combine several.
    all: Vec<PathRow>,
    /// Edges that some valid trial did not prove.
    unproven: Vec<String>,
    /// Protocols on each hop; empty in results that lack them.
    hops: Vec<HopRow>,
    filters: Vec<FilterRow>,
    filter_notes: Vec<&'static str>,
    /// True if every valid trial proved its path.
    proven: bool,
    /// True if requests were to be traced.
    traced: bool,
}

/// One proxy of one mode under one load, over the valid trials.
#[derive(Debug, Serialize)]
struct PathRow {
    load: String,
    mode: &'static str,
    proxy: String,
    received: String,
    expected: String,
    tls: String,
    spans: String,
    proven: String,
}

/// One hop of one mode, over the valid trials of all loads.
#[derive(Debug, Serialize)]
struct HopRow {
    mode: &'static str,
    from: String,
    to: String,
    spoken: String,
    asked: &'static str,
}

/// Counters of one proxy over several trials, or of several identical proxies.
#[derive(Clone, Default)]
struct Counted {
    name: String,
    received: u64,
    expected: u64,
    /// True if the counts are connections, for a proxy that forwards opaque TCP.
    of_connections: bool,
    handshakes: u64,
    tls_expected: bool,
    takes_plain_text: Option<bool>,
    /// Requests that it traced, and its spans that arrived; `None` if it was not to trace.
    traced: Option<(u64, u64)>,
}

impl Counted {
    /// A number of requests, or a number of connections with the noun, since the column is headed "requests".
    fn show(&self, count: u64) -> String {
        if self.of_connections {
            format::counted(count, "connection", "connections")
        } else {
            format::count(count)
        }
    }

    /// The sum of both, under the name of `self`.
    fn plus(mut self, other: &Self) -> Self {
        self.received = self.received.saturating_add(other.received);
        self.expected = self.expected.saturating_add(other.expected);
        self.handshakes = self.handshakes.saturating_add(other.handshakes);
        self.tls_expected |= other.tls_expected;
        self.takes_plain_text = self.takes_plain_text.max(other.takes_plain_text);
        if let Some((requests, spans)) = other.traced {
            self.add_traced(requests, spans);
        }
        self
    }

    fn add_traced(&mut self, requests: u64, spans: u64) {
        let traced = self.traced.get_or_insert_default();
        *traced = (traced.0.saturating_add(requests), traced.1.saturating_add(spans));
    }
}

/// `None` if no trial had a proxy on its path.
pub fn path(context: &Context) -> Option<PathSection> {
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    for at in context.conditions.all() {
        for cell in context.modes.iter().map(|mode| at.cell(*mode)) {
            let each = counted(context, cell);
            let together = together(context, cell, &each);
            if together.len() < each.len() {
                all.extend(path_rows(context, cell, each));
            }
            rows.extend(path_rows(context, cell, together));
        }
    }
    let proven = context.run.trials.iter().filter(|trial| !is_excluded(trial)).all(|trial| trial.path.proven);
    let traced = context.run.trials.iter().any(|trial| trial.path.tracing.is_some());
    let hops = context.modes.iter().flat_map(|mode| hop_rows(context, *mode)).collect();
    let cells = context.run.summary.cells.iter();
    let unproven = cells.flat_map(|cell| {
        let edges = cell.edges.iter().filter(|edge| cell.valid > 0 && !edge.proven);
        edges.map(|edge| format!("{} → {} of {}", edge.from, edge.to, cell.mode))
    });
    let unproven = unproven.collect();
    let filters = filters::rows(context);
    let filter_notes = filters::notes(context, &filters);
    (!rows.is_empty()).then_some(PathSection {
        rows,
        all,
        unproven,
        hops,
        filters,
        filter_notes,
        proven,
        traced,
    })
}

/// Combines identical proxies if there are many.
fn together(context: &Context, cell: CellKey<'_>, each: &[Counted]) -> Vec<Counted> {
    let Some(summary) = context.run.summary.cell(cell).filter(|_| each.len() > MAX_UNFOLDED) else {
        return each.to_vec();
    };
    let names = CopyNames::new(summary);
    let groups = grouped(each, |counted| (names.of(&counted.name), counted.of_connections));
    let sum = |((name, of_connections), copies): ((String, bool), Vec<&Counted>)| match copies.as_slice() {
        [only] => (*only).clone(),
        copies => {
            let name = format!("{name} ×{}", copies.len());
            copies
                .iter()
                .fold(Counted { name, of_connections, ..Counted::default() }, |sum, next| sum.plus(next))
        }
    };
    groups.into_iter().map(sum).collect()
}

fn hop_rows(context: &Context, mode: Mode) -> Vec<HopRow> {
    let valid = context.run.trials.iter().filter(|trial| trial.mode == mode && !is_excluded(trial));
    let hops = HopProof::of_all(valid.map(|trial| trial.path.hops.as_slice()));
    let row = |hop: &HopProof| HopRow {
        mode: mode.name(),
        spoken: hop.describe(),
        asked: hop.asked.map_or("nothing: it is carried as it comes", HopProtocol::describe),
        from: hop.from.clone(),
        to: hop.to.clone(),
    };
    if hops.len() <= MAX_UNFOLDED {
        return hops.iter().map(row).collect();
    }
    let alike = |hop: &HopProof| {
        let ends = [&hop.from, &hop.to].map(|end| local_name(end).to_owned());
        (ends, hop.describe(), hop.asked.map(HopProtocol::describe))
    };
    let rows = grouped(&hops, alike).into_iter().map(|(([from, to], ..), hops)| match hops.as_slice() {
        [only] => row(only),
        copies => HopRow { from, to: format!("{to} ×{}", copies.len()), ..row(copies[0]) },
    });
    rows.collect()
}

fn valid_trials<'a>(context: &'a Context, cell: CellKey<'_>) -> Vec<&'a TrialRecord> {
    context.trials.of(cell).iter().copied().filter(|trial| !is_excluded(trial)).collect()
}

/// Counters of each proxy over the valid trials of a cell.
fn counted(context: &Context, cell: CellKey<'_>) -> Vec<Counted> {
    let trials = valid_trials(context, cell);
    let mut positions: HashMap<String, usize> = HashMap::new();
    let mut proxies: Vec<Counted> = Vec::new();
    for (proof, name) in trials.iter().flat_map(|trial| passages(&trial.path.proxies)) {
        let position = *positions.entry(name.clone()).or_insert_with(|| {
            proxies.push(Counted { name, ..Counted::default() });
            proxies.len() - 1
        });
        let counted = &mut proxies[position];
        let (received, expected) = match proof.streams {
            Some(streams) => (streams.connections, streams.connections_expected),
            None => (proof.requests_received, proof.requests_expected),
        };
        counted.of_connections |= proof.streams.is_some();
        counted.received = counted.received.saturating_add(received);
        counted.expected = counted.expected.saturating_add(expected);
        counted.handshakes = counted.handshakes.saturating_add(proof.tls_handshakes);
        counted.tls_expected |= proof.tls_expected;
        counted.takes_plain_text = counted.takes_plain_text.max(proof.takes_plain_text);
    }
    for traced in trials.iter().filter_map(|trial| trial.path.tracing.as_ref()).flat_map(|all| &all.proxies) {
        if let Some(position) = positions.get(&traced.name) {
            proxies[*position].add_traced(traced.requests_traced, traced.spans_received);
        }
    }
    proxies
}

fn path_rows(context: &Context, cell: CellKey<'_>, proxies: Vec<Counted>) -> Vec<PathRow> {
    let trials = valid_trials(context, cell);
    let proven = trials.iter().filter(|trial| trial.path.proven).count();
    proxies
        .into_iter()
        .map(|proxy| PathRow {
            load: context.conditions.label(cell.conditions),
            mode: cell.mode.name(),
            received: proxy.show(proxy.received),
            expected: proxy.show(proxy.expected),
            tls: match (proxy.tls_expected, proxy.handshakes) {
                (true, handshakes) => {
                    let handshakes = format::counted(handshakes, "handshake", "handshakes");
                    match proxy.takes_plain_text {
                        Some(true) => format!("{handshakes}; plaintext is accepted too"),
                        Some(false) => format!("{handshakes}; plaintext is refused"),
                        None => handshakes,
                    }
                }
                (false, _) => "not claimed".to_owned(),
            },
            spans: proxy.traced.map_or_else(
                || format::ABSENT.to_owned(),
                |(requests, spans)| format!("{} for {}", format::count(spans), format::count(requests)),
            ),
            proven: format!("{proven} of {}", trials.len()),
            proxy: proxy.name,
        })
        .collect()
}

/// Each proof with its proxy's name. If a proxy is passed more than once, the name says which passage it is.
fn passages(proofs: &[ProxyProof]) -> Vec<(&ProxyProof, String)> {
    let mut times: HashMap<&str, usize> = HashMap::new();
    for proof in proofs {
        *times.entry(&proof.name).or_default() += 1;
    }
    let mut passed: HashMap<&str, usize> = HashMap::new();
    let mut named = Vec::with_capacity(proofs.len());
    for proof in proofs {
        let passage = passed.entry(&proof.name).or_default();
        *passage += 1;
        let name = match times[proof.name.as_str()] {
            1 => proof.name.clone(),
            all => format!("{}, passage {passage} of {all}", proof.name),
        };
        named.push((proof, name));
    }
    named
}

/// Figures of one published source, beside ours.
#[derive(Debug, Serialize)]
pub struct Published {
    source: String,
    differs: String,
    figures: Vec<PublishedRow>,
}

#[derive(Debug, Serialize)]
struct PublishedRow {
    what: String,
    value: String,
    measured: String,
    ratio: Option<String>,
    /// Agreement as text; a dash if there is no interval of a single figure.
    agrees: &'static str,
}

pub fn published(context: &Context) -> Vec<Published> {
    let mut sources: Vec<Published> = Vec::new();
    for figure in &context.run.summary.published {
        let is_same = |last: &Published| (&last.source, &last.differs) == (&figure.source, &figure.differs);
        if !sources.last().is_some_and(is_same) {
            sources.push(Published {
                source: figure.source.clone(),
                differs: figure.differs.clone(),
                figures: Vec::new(),
            });
        }
        if let Some(source) = sources.last_mut() {
            source.figures.push(row(figure));
        }
    }
    sources
}

fn row(figure: &PublishedFigure) -> PublishedRow {
    PublishedRow {
        what: figure.what.clone(),
        value: figure.value.clone(),
        measured: figure.measured.clone().unwrap_or_else(|| format::ABSENT.to_owned()),
        ratio: figure.ratio.map(|ratio| format!("× {ratio:.2}")),
        agrees: format::agreement(figure).unwrap_or(format::ABSENT),
    }
}
