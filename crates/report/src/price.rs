//! The answer of `meshmeter price` in the parts of an answer of `meshmeter size`, and its sentences.

use crate::format::{self, SizeUnit};
use crate::sentences::size::{currency, measured_on, text};
use crate::size::{AnswerParts, SizeParts, figure};
use results::{
    BasisKind, EntryLatency, Estimate, Mode, NODE_PROXY_NAMESPACE, PriceChange, PriceResult, PricedMode,
    SizeNote, SizeNoteKind, SizeQuestion, WhatIfPrices,
};
use statistics::words;
use std::collections::BTreeSet;

/// Calls on critical paths that are shown; all are in the JSON.
const MAX_CALLS: usize = 40;
const SCOPE: &str = "Intervals are 95 % and cover these runs alone; what they do not cover is in the list of what the prices rest on.";

/// One line per figure.
const FORMULA: [&str; 4] = [
    "CPU used = proxies × (CPU at rest + requests/s through each × CPU per request of its workload); requests follow the calls of the topology",
    "memory used (working set, or resident where no cgroup reports it) = proxies × (constant + per pod of the mesh + per request/s), as far as the runs separate them, and what each workload differs by",
    "reserved = proxies × their requests",
    "per month = (CPU × cpu-hour + memory in GB of 10⁹ bytes × gb-hour + proxies × per-replica-hour) × 730 h",
];

/// Sets the texts of a result.
pub fn fill_price(result: &mut PriceResult) {
    let is_one_run = result.runs.len() < 2;
    let notes = result.refusals.iter_mut().chain(&mut result.notes);
    notes.for_each(|note| note.text = refusal(note, is_one_run));
}

fn refusal(note: &SizeNote, is_one_run: bool) -> String {
    let detail = note.detail.as_deref().unwrap_or_default();
    match note.kind {
        SizeNoteKind::MixedMachines => {
            format!("The runs are of different machines, and CPU per request holds on its own: {detail}.")
        }
        SizeNoteKind::MixedSettings if is_one_run => {
            format!(
                "The run varies {detail}: a price holds for one value. Run it with one, or name another one to price the change, such \
                 as `--set KEY=VALUE`."
            )
        }
        SizeNoteKind::MixedSettings => {
            format!("The runs differ in {detail}: their proxies do not follow one law.")
        }
        _ => text(note, &SizeQuestion::default()),
    }
}

/// One sentence: what each mode with proxies would take.
#[must_use]
pub fn price_headline(result: &PriceResult) -> String {
    let with_proxies = result.modes.iter().filter(|mode| mode.proxies > 0);
    let clauses: Vec<String> = with_proxies.map(|mode| clause(result, mode)).collect();
    match (clauses.is_empty(), result.modes.is_empty()) {
        (true, true) => "Not answered".to_owned(),
        (true, false) => "No mode with proxies was measured.".to_owned(),
        _ => format!("{}.", words::sentence(&clauses.join("; "))),
    }
}

fn clause(result: &PriceResult, mode: &PricedMode) -> String {
    let subject = match mode.mode {
        Mode::Sidecar => "sidecars".to_owned(),
        Mode::AmbientWaypoint => {
            let with = result.namespaces.iter().filter(|namespace| {
                let has_mode = namespace.modes.iter().any(|own| own.mode == mode.mode);
                has_mode && namespace.name != NODE_PROXY_NAMESPACE
            });
            let count = with.count().max(1) as u64;
            format!("ambient with waypoints for {}", format::counted(count, "namespace", "namespaces"))
        }
        other => other.name().to_owned(),
    };
    let mut used = vec![format!("{} cores", figure(mode.cpu_cores_used.as_ref(), 1.0))];
    used.extend(mode.memory_bytes_used.map(|bytes| format::size(bytes.estimate)));
    let cost = mode.cost_per_month.map(|cost| {
        let currency = result.prices.as_ref().map_or("", |prices| prices.currency.as_str());
        format!(" ({} per month)", format::with_unit(&figure(Some(&cost), 1.0), currency))
    });
    let unused = mode.cpu_cores_used.map(|cores| 1.0 - cores.estimate / mode.cpu_cores_reserved);
    let unused = unused.filter(|share| mode.mode == Mode::Sidecar && *share > 0.0);
    let unused = unused.map(|share| format!(", {} of the reserved CPU unused", format::percent(share)));
    format!(
        "{subject} would take {}{}{}",
        used.join(" and "),
        cost.unwrap_or_default(),
        unused.unwrap_or_default()
    )
}

impl SizeParts {
    pub(crate) fn of_price(result: &PriceResult) -> Self {
        let machine = measured_on(result.machine.as_ref());
        let opening = format!("{} at {}.{machine}", result.topology, words::rate(result.requests_per_s));
        let refusals = result.refusals.iter().map(|refusal| format!("Not answered. {}", refusal.text));
        Self {
            command: "price",
            headline: price_headline(result),
            warnings: result.notes.iter().map(|note| note.text.clone()).collect(),
            opening: if result.modes.is_empty() { String::new() } else { opening },
            answers: answers(result),
            refusals: refusals.collect(),
            scope: SCOPE,
            formula: FORMULA.map(str::to_owned).to_vec(),
        }
    }
}

fn answers(result: &PriceResult) -> Vec<AnswerParts> {
    let table = |place: &str, header: Vec<String>, rows: Vec<Vec<String>>| AnswerParts {
        place: place.to_owned(),
        header,
        rows,
        ..AnswerParts::default()
    };
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let mut all =
        vec![resources(result, "mode", result.modes.iter().map(|mode| (mode.mode.to_string(), mode)))];
    all[0].basis = model_error(result).into_iter().collect();
    let of_namespaces = result.namespaces.iter().flat_map(|namespace| {
        namespace.modes.iter().map(|mode| (format!("{}, {}", namespace.name, mode.mode), mode))
    });
    all.push(resources(result, "namespace, mode", of_namespaces));
    let entries = || result.modes.iter().flat_map(|mode| mode.entries.iter().map(move |entry| (mode, entry)));
    let rows =
        entries().map(|(mode, entry)| latency_row(format!("{}, {}", entry.name, mode.mode), entry.added_us));
    all.push(table("Added latency by entry point", named(&["entry, mode", "p50", "p99"]), rows.collect()));
    // A call is on the paths of several entries.
    let mut shown = BTreeSet::new();
    let of_paths =
        entries().flat_map(|(mode, entry)| entry.critical_path.iter().map(move |call| (mode, call)));
    let of_paths = of_paths.filter(|(mode, call)| {
        call.added_us != EntryLatency::default() && shown.insert((mode.mode, &call.from, &call.to))
    });
    let rows = of_paths.map(|(mode, call)| {
        latency_row(format!("{} → {}, {}", call.from, call.to, mode.mode), call.added_us)
    });
    let mut of_paths =
        table("Added latency on critical paths", named(&["call, mode", "p50", "p99"]), rows.collect());
    let left_out = of_paths.rows.len().saturating_sub(MAX_CALLS);
    of_paths.rows.truncate(MAX_CALLS);
    if left_out > 0 {
        of_paths.notes.push(format!("{left_out} further calls are in the JSON"));
    }
    all.push(of_paths);
    all.extend(result.what_if.as_ref().into_iter().flat_map(|changes| what_if(result, changes)));
    let rests_on = result.rests_on.iter().map(|basis| {
        let kind = match basis.kind {
            BasisKind::Measured => "measured",
            BasisKind::Learned => "learned",
            BasisKind::Published => "published",
            BasisKind::Assumed => "assumed",
        };
        vec![basis.what.clone(), kind.to_owned(), basis.value.clone()]
    });
    all.push(table("The prices rest on", named(&["what", "kind", "value"]), rests_on.collect()));
    all.retain(|answer| !answer.rows.is_empty());
    if result.modes.is_empty() { Vec::new() } else { all }
}

/// Tables of changes: proxies with their resources, and latency.
fn what_if(result: &PriceResult, changes: &WhatIfPrices) -> [AnswerParts; 2] {
    let bytes = changes.modes.iter().filter_map(|mode| Some(mode.memory_bytes_used?.estimate));
    let unit = SizeUnit::for_sizes(bytes);
    let signed = |change: Option<Estimate>, scale: f64| {
        let text = |change: &Estimate| figure(Some(change), scale);
        change.map_or_else(|| format::ABSENT.to_owned(), |change| words::signed(&change, text))
    };
    let plain = |change: f64, scale: f64| signed(Some(Estimate::single(change)), scale);
    let mut header = vec![
        "mode".to_owned(),
        "proxies".to_owned(),
        "CPU, cores".to_owned(),
        "reserved".to_owned(),
        format!("memory, {}", unit.symbol()),
        "reserved".to_owned(),
    ];
    if result.prices.is_some() {
        let currency = currency(result.prices.as_ref(), ", ");
        header.extend([format!("per month{currency}"), "of what is reserved".to_owned()]);
    }
    let row = |mode: &PriceChange| {
        let mut row = vec![
            mode.mode.to_string(),
            words::signed(&Estimate::single(mode.proxies as f64), |change| format::tick(change.estimate)),
            signed(mode.cpu_cores_used, 1.0),
            plain(mode.cpu_cores_reserved, 1.0),
            signed(mode.memory_bytes_used, unit.bytes()),
            plain(mode.memory_bytes_reserved, unit.bytes()),
        ];
        if result.prices.is_some() {
            let reserved = mode.cost_per_month_reserved.map(Estimate::single);
            row.extend([signed(mode.cost_per_month, 1.0), signed(reserved, 1.0)]);
        }
        row
    };
    let entries = changes.modes.iter().flat_map(|mode| mode.entries.iter().map(move |entry| (mode, entry)));
    let latency =
        entries.map(|(mode, entry)| latency_row(format!("{}, {}", entry.name, mode.mode), entry.added_us));
    let place = format!("What if: {}", changes.settings.join(", "));
    [
        AnswerParts {
            header,
            rows: changes.modes.iter().map(row).collect(),
            place: place.clone(),
            ..AnswerParts::default()
        },
        AnswerParts {
            place: format!("{place}: change of response times"),
            header: ["entry, mode", "p50", "p99"].map(str::to_owned).to_vec(),
            rows: latency.collect(),
            ..AnswerParts::default()
        },
    ]
}

/// Row of a table of added latencies.
fn latency_row(place: String, added_us: EntryLatency) -> Vec<String> {
    let time = |added: Option<Estimate>| {
        added.map_or_else(|| format::ABSENT.to_owned(), |added| words::latency(&added))
    };
    vec![place, time(added_us.p50), time(added_us.p99)]
}

/// Table of proxies and their resources, with the first column of this name.
fn resources<'a>(
    result: &PriceResult,
    first: &str,
    rows: impl Iterator<Item = (String, &'a PricedMode)>,
) -> AnswerParts {
    let used = |mode: &PricedMode| Some(mode.memory_bytes_used?.estimate);
    let unit = SizeUnit::for_sizes(result.modes.iter().filter_map(used));
    let mut header = vec![
        first.to_owned(),
        "proxies".to_owned(),
        "CPU, cores".to_owned(),
        "reserved".to_owned(),
        format!("memory, {}", unit.symbol()),
        "reserved".to_owned(),
    ];
    if result.prices.is_some() {
        let currency = currency(result.prices.as_ref(), ", ");
        header.extend([format!("per month{currency}"), "of what is reserved".to_owned()]);
    }
    let row = |(name, mode): (String, &PricedMode)| {
        let mut row = vec![
            name,
            format::count(mode.proxies),
            figure(mode.cpu_cores_used.as_ref(), 1.0),
            format::digits(mode.cpu_cores_reserved),
            figure(mode.memory_bytes_used.as_ref(), unit.bytes()),
            format::digits(mode.memory_bytes_reserved / unit.bytes()),
        ];
        if result.prices.is_some() {
            let reserved =
                mode.cost_per_month_reserved.map_or_else(|| format::ABSENT.to_owned(), format::digits);
            row.extend([figure(mode.cost_per_month.as_ref(), 1.0), reserved]);
        }
        row
    };
    AnswerParts {
        place: format!("Proxies by {first}"),
        header,
        rows: rows.map(row).collect(),
        ..AnswerParts::default()
    }
}

/// The model against the telemetry.
fn model_error(result: &PriceResult) -> Option<String> {
    let error = result.model_error.as_ref()?;
    let cpu = error.cpu_cores.map(|check| {
        let change = words::change_value(check.error);
        format!("CPU {change} of the {} in the telemetry", words::cores_value(check.measured))
    });
    let memory = error.memory_bytes.map(|check| {
        let change = words::change_value(check.error);
        format!("memory {change} of {}", format::size(check.measured))
    });
    let both: Vec<String> = cpu.into_iter().chain(memory).collect();
    Some(format!("Error of the model for today's sidecars: {}.", both.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{PricedNamespace, Prices};

    fn mode(mode: Mode, cores: [f64; 3], bytes: f64) -> PricedMode {
        let [estimate, low, high] = cores;
        let cores = Estimate { low: Some(low), high: Some(high), ..Estimate::single(estimate) };
        PricedMode {
            mode,
            proxies: 1000,
            cpu_cores_used: Some(cores),
            cpu_cores_reserved: 100.0,
            memory_bytes_used: Some(Estimate::single(bytes)),
            memory_bytes_reserved: 128e9,
            cost_per_month: None,
            cost_per_month_reserved: None,
            entries: Vec::new(),
            calls: Vec::new(),
        }
    }

    #[test]
    fn headline_has_every_mode_with_proxies() {
        let waypoints = mode(Mode::AmbientWaypoint, [12.0, 9.0, 15.0], 4e9);
        let namespace =
            |name: &str| PricedNamespace { name: name.to_owned(), modes: vec![waypoints.clone()] };
        let mut result = PriceResult {
            modes: vec![
                PricedMode { proxies: 0, ..mode(Mode::None, [0.0; 3], 0.0) },
                mode(Mode::Sidecar, [41.0, 36.0, 47.0], 96e9),
                waypoints.clone(),
            ],
            namespaces: ["shop", "stores", NODE_PROXY_NAMESPACE].map(namespace).to_vec(),
            ..PriceResult::default()
        };
        assert_eq!(
            price_headline(&result).replace('\u{a0}', " "),
            "Sidecars would take 41.0 (36.0–47.0) cores and 96 GB, 59 % of the reserved CPU unused; ambient with waypoints for \
             2 namespaces would take 12.0 (9.0–15.0) cores and 4 GB."
        );
        result.prices = Some(Prices { currency: "EUR".to_owned(), ..Prices::default() });
        result.modes[1].cost_per_month = Some(Estimate::single(1550.0));
        assert!(
            price_headline(&result).contains("96\u{a0}GB (1550\u{a0}EUR per month), 59"),
            "{}",
            price_headline(&result)
        );
        result.modes.truncate(1);
        assert_eq!(price_headline(&result), "No mode with proxies was measured.");
    }
}
