//! Proof of the path from the proxies' own counters, and what others published.

use super::context::Context;
use crate::format;
use experiment::Mode;
use experiment::schema::{CellKey, HopProof, HopProtocol, ProxyProof, PublishedFigure, TrialRecord};
use serde::Serialize;

/// What the proxies counted.
#[derive(Debug, Serialize)]
pub struct PathSection {
    rows: Vec<PathRow>,
    /// What was spoken on the way; empty in results that do not say.
    hops: Vec<HopRow>,
    /// Every valid trial proved its path.
    proven: bool,
    /// Something was to be traced.
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

/// What one proxy counted over several trials.
#[derive(Default)]
struct Counted {
    name: String,
    received: u64,
    expected: u64,
    /// Whether these are connections, of a proxy that does not read requests.
    of_connections: bool,
    handshakes: u64,
    tls_expected: bool,
    takes_plain_text: Option<bool>,
    /// Requests that it traced, and its spans that arrived; absent where it was not to trace.
    traced: Option<(u64, u64)>,
}

impl Counted {
    /// A number of requests, or of connections with their name: the column is headed "requests".
    fn show(&self, count: u64) -> String {
        if self.of_connections {
            format::counted(count, "connection", "connections")
        } else {
            format::count(count)
        }
    }
}

/// Absent where no trial had a proxy on its path.
pub fn path(context: &Context) -> Option<PathSection> {
    let mut rows = Vec::new();
    for at in context.conditions.all() {
        for mode in &context.modes {
            rows.extend(path_rows(context, at.cell(*mode)));
        }
    }
    let proven = context.run.trials.iter().filter(|trial| trial.verdict.valid).all(|trial| trial.path.proven);
    let traced = context.run.trials.iter().any(|trial| trial.path.tracing.is_some());
    let hops = context.modes.iter().flat_map(|mode| hop_rows(context, *mode)).collect();
    (!rows.is_empty()).then_some(PathSection { rows, hops, proven, traced })
}

fn hop_rows(context: &Context, mode: Mode) -> Vec<HopRow> {
    let valid = context.run.trials.iter().filter(|trial| trial.mode == mode && trial.verdict.valid);
    let hops = HopProof::of_all(valid.map(|trial| trial.path.hops.as_slice()));
    let row = |hop: HopProof| HopRow {
        mode: mode.name(),
        spoken: hop.words(),
        asked: hop.asked.map_or("nothing: it is carried as it comes", HopProtocol::words),
        from: hop.from,
        to: hop.to,
    };
    hops.into_iter().map(row).collect()
}

fn path_rows(context: &Context, cell: CellKey<'_>) -> Vec<PathRow> {
    let mode = cell.mode;
    let trials: Vec<&TrialRecord> =
        context.trials.of(cell).iter().copied().filter(|trial| trial.verdict.valid).collect();
    let proven = trials.iter().filter(|trial| trial.path.proven).count();
    let mut proxies: Vec<Counted> = Vec::new();
    for (proof, name) in trials.iter().flat_map(|trial| passages(&trial.path.proxies)) {
        let position = proxies.iter().position(|proxy| proxy.name == name).unwrap_or_else(|| {
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
        if let Some(counted) = proxies.iter_mut().find(|counted| counted.name == traced.name) {
            let (requests, spans) = counted.traced.get_or_insert_default();
            *requests = requests.saturating_add(traced.requests_traced);
            *spans = spans.saturating_add(traced.spans_received);
        }
    }
    proxies
        .into_iter()
        .map(|proxy| PathRow {
            load: context.conditions.label(cell.conditions),
            mode: mode.name(),
            received: proxy.show(proxy.received),
            expected: proxy.show(proxy.expected),
            tls: match (proxy.tls_expected, proxy.handshakes) {
                (true, handshakes) => {
                    let handshakes = format::counted(handshakes, "handshake", "handshakes");
                    match proxy.takes_plain_text {
                        Some(true) => format!("{handshakes}; plain text is taken too"),
                        Some(false) => format!("{handshakes}; plain text is refused"),
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

/// Each proof with its proxy's name; that of a proxy which is passed more than once says which time it is.
fn passages(proofs: &[ProxyProof]) -> Vec<(&ProxyProof, String)> {
    let times = |name: &str, proofs: &[ProxyProof]| proofs.iter().filter(|proof| proof.name == name).count();
    proofs
        .iter()
        .enumerate()
        .map(|(index, proof)| match times(&proof.name, proofs) {
            1 => (proof, proof.name.clone()),
            all => {
                let passage = times(&proof.name, &proofs[..=index]);
                (proof, format!("{}, passage {passage} of {all}", proof.name))
            }
        })
        .collect()
}

/// What one source published, beside ours.
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
    /// In words; a dash where there is no interval of a single figure.
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
