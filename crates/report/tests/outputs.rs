//! Terminal, Markdown, HTML and JSON hold the same differences, and no verdict contradicts the interval beside it.

mod fixture;

use fixture::Chance;
use fixture::designs::{DESIGNS, synchronous};
use fixture::fleets::fleet_run;
use report::format::{Interval, TimeUnit, cores_interval};
use report::table::{Difference, ResultTable};
use report::terminal::{Options, render};
use report::{RunData, html, markdown};
use results::{Cell, Estimate, Figure, Finding, FindingKind, FindingVerdict, Mode, Summary};
use serde_json::Value as Json;
use statistics::copies::local_name;
use std::collections::BTreeMap;

/// Two words crossed with two modes, with differences that chance may or may not explain.
fn crossed(seed: u64) -> RunData {
    let mut chance = Chance::new(seed);
    let trials = fixture::access_logs(|trial, is_second| {
        let of_mode = if trial.mode == Mode::None { 1.0 } else { 1.0 + 0.05 * (seed % 5) as f64 };
        let of_word = if is_second { 1.0 + 0.02 * (seed % 7) as f64 } else { 1.0 };
        let times = &mut trial.result.as_mut().expect("the fixture has a result").response_time_us;
        let mut time = |us: f64| Some(us * of_mode * of_word * (0.02 * chance.normal()).exp());
        (times.p50, times.p90, times.p99) = (time(500.0), time(700.0), time(1200.0));
    });
    fixture::run(trials)
}

/// Every difference of the summary that tables state, as text.
fn texts(summary: &Summary) -> Vec<String> {
    let unit = ResultTable::new(summary).unit;
    let added = summary.cells.iter().filter_map(|cell| cell.added_us);
    let added = added.flat_map(|added| [Figure::P50, Figure::P99].map(|figure| added.judged(figure)));
    let added = added.flatten().map(|(by, verdict)| Difference::new((&by, verdict), unit).text());
    let times = || summary.factor_differences.iter().filter(|one| one.figure.is_time());
    let unit = TimeUnit::for_times(times().map(|one| one.estimate.estimate));
    let values = times().map(|one| Difference::new((&one.estimate, one.verdict), unit).text());
    let others = summary.factor_differences.iter().filter(|one| one.figure.key().contains("cpu"));
    let others = others.filter_map(|one| {
        Some(Difference::percent((one.relative.as_ref()?, one.verdict)).text_with_unit("%"))
    });
    added.chain(values).chain(others).collect()
}

fn outputs(run: &RunData) -> [(&'static str, String); 3] {
    // No sentence is wrapped.
    let terminal = render(&run.summary, Options { width: 4000, colours: false });
    let html = html::render(run).replace("&#x2f;", "/");
    [("terminal", terminal), ("Markdown", markdown::render(run)), ("HTML", html)]
}

#[test]
fn every_difference_is_in_all_outputs() {
    let crossed = (0..6).map(|seed| (format!("crossed, seed {seed}"), crossed(seed)));
    let of_designs = DESIGNS.iter().map(|design| (design.text.to_owned(), design.run(1)));
    for (named, run) in crossed.chain(of_designs) {
        let json = serde_json::to_value(&run.summary).expect("a summary is JSON");
        let texts = texts(&serde_json::from_value(json).expect("a summary"));
        assert!(texts.len() >= 4, "{named}: {texts:?}");
        for (name, output) in outputs(&run) {
            for text in &texts {
                assert!(output.contains(text.as_str()), "{text:?} is not in {name}, {named}:\n{output}");
            }
        }
    }
}

/// A row that every output has: its names on a terminal and in HTML, and its figures.
struct Row {
    terminal: String,
    html: Vec<String>,
    figures: Vec<Interval>,
}

/// Rows of services and calls, from the JSON of a summary.
fn rows(summary: &Summary) -> Vec<Row> {
    let json = serde_json::to_value(summary).expect("a summary is JSON");
    let all = |field: &str| -> Vec<Json> {
        let cells = json["cells"].as_array().expect("cells").iter();
        cells.flat_map(|cell| cell[field].as_array().cloned().unwrap_or_default()).collect()
    };
    let estimate = |json: &Json| serde_json::from_value::<Estimate>(json.clone()).expect("an estimate");
    let name = |json: &Json, field: &str| json[field].as_str().expect("a name").to_owned();
    let p99 = |edge: &Json| estimate(&edge["response_time_us"]["p99"]);
    let edges = all("edges");
    let unit = TimeUnit::for_times(edges.iter().map(|edge| p99(edge).estimate));
    let of_edge = |edge: &Json| {
        let (from, to) = (name(edge, "from"), name(edge, "to"));
        let times = ["p50", "p99"].map(|figure| unit.interval(&estimate(&edge["response_time_us"][figure])));
        let rate = Interval::new(&estimate(&edge["requests_per_s"]));
        Row {
            terminal: format!(" {from} → {to} "),
            html: vec![from, to],
            figures: [rate].into_iter().chain(times).collect(),
        }
    };
    let of_service = |service: &Json| {
        let (namespace, name) = (name(service, "namespace"), name(service, "name"));
        let cores = ["cpu_cores", "proxy_cpu_cores", "total_cpu_cores"];
        let cores = cores.iter().filter(|field| service.get(**field).is_some());
        let cores = cores.map(|field| cores_interval(&estimate(&service[*field])));
        Row {
            terminal: format!(" {namespace}/{name} "),
            figures: [Interval::new(&estimate(&service["requests_per_s"]))]
                .into_iter()
                .chain(cores)
                .collect(),
            html: vec![format!("{namespace}/{name}")],
        }
    };
    edges.iter().map(of_edge).chain(all("services").iter().map(of_service)).collect()
}

impl Row {
    fn is_in(&self, output: &str, is_html: bool) -> bool {
        let html = |figure: &Interval| match &figure.range {
            Some(range) => format!(">{}<span class=\"range\">{range}</span>", figure.estimate),
            None => format!(">{}<", figure.estimate),
        };
        let in_html = |row: &str| {
            self.html.iter().all(|name| row.contains(&format!(">{name}<")))
                && self.figures.iter().all(|figure| row.contains(&html(figure)))
        };
        let in_text = |line: &str| {
            format!(" {line} ").contains(&self.terminal)
                && self.figures.iter().all(|figure| line.contains(&figure.text()))
        };
        if is_html { output.split("<tr>").any(in_html) } else { output.lines().any(in_text) }
    }
}

#[test]
fn figures_of_services_and_calls_are_in_all_outputs_with_their_intervals() {
    let run = fixture::run(fixture::tiered::tiered_trials(1));
    let rows = rows(&run.summary);
    assert_eq!(rows.len(), 2 * (4 + 4), "services and calls of two modes");
    assert!(rows.iter().all(|row| row.figures.iter().all(|figure| figure.range.is_some())));
    assert_eq!(rows.iter().map(|row| row.figures.len()).max(), Some(4), "CPU of proxies, and of all");
    for (name, output) in outputs(&run) {
        for row in &rows {
            assert!(
                row.is_in(&output, name == "HTML"),
                "{}: {:?} is not in {name}",
                row.terminal,
                row.figures
            );
        }
    }
}

/// Numbers of an interval such as `(0.35–0.41` or `(−39 to 50`.
fn interval(text: &str) -> Option<(f64, f64)> {
    let number = |text: &str| text.trim().replace('−', "-").parse::<f64>().ok();
    let text = text.split(')').next()?;
    let (low, high) = text.split_once(" to ").or_else(|| text.split_once('–'))?;
    Some((number(low)?, number(high)?))
}

/// Differences in a text: the text, their interval, and whether they are shown.
fn differences(text: &str) -> Vec<(String, (f64, f64), bool)> {
    let mut found = Vec::new();
    for (place, _) in text.match_indices('(') {
        let (before, after) = (&text[..place], &text[place + 1..]);
        let Some(ends) = interval(after) else { continue };
        let clause = clause(before);
        let mut words = clause.split_whitespace().rev().take(2);
        let behind = after.split_once(')').map_or("", |(_, behind)| behind);
        // Such as ` of memory, not shown`.
        let own = behind.split(['(', ';', '.']).next().unwrap_or_default();
        let is_not_shown = own.contains(", not shown") || clause.contains("not shown: ");
        let is_difference = words.any(|word| word.starts_with('+') || word.starts_with('−'));
        if is_not_shown || (is_difference && !behind.starts_with(", no interval")) {
            let end = after.char_indices().nth(60).map_or(after.len(), |(end, _)| end);
            found.push((format!("{clause}({}", &after[..end]), ends, !is_not_shown));
        }
    }
    found
}

/// The clause at the end of a text.
fn clause(text: &str) -> &str {
    let line = text.rsplit('\n').next().unwrap_or_default();
    let ends = ["; ", ". ", ">"].iter().filter_map(|end| Some(line.rfind(end)? + end.len()));
    &line[ends.max().unwrap_or(0)..]
}

#[test]
fn no_text_contradicts_the_interval_beside_it() {
    let runs = (0..25).map(|seed| (format!("crossed, seed {seed}"), crossed(seed)));
    let of_designs = DESIGNS.iter().flat_map(|design| {
        (0..4).map(move |seed| (format!("{}, seed {seed}", design.text), design.run(seed)))
    });
    let fleets = [("proxies", ["100", "200"]), ("kind", ["sidecar", "gateway"])];
    let fleets = fleets.map(|(factor, values)| (format!("fleets by {factor}"), fleet_run(factor, &values)));
    let mut counts: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    let mut corrected = 0;
    for (named, run) in runs.chain(of_designs).chain(fleets) {
        let all = run.summary.factor_differences.iter();
        corrected += all.filter(|one| one.estimate.alone.is_some()).count();
        for (name, output) in outputs(&run) {
            for (text, (low, high), is_shown) in differences(&output) {
                let excludes_zero = low > 0.0 || high < 0.0;
                assert_eq!(excludes_zero, is_shown, "{name}, {named}: {text}");
                *counts.entry((name, is_shown)).or_default() += 1;
            }
            let says_why = output.contains("comparisons in this run, chance is not excluded");
            let has_any = run.summary.findings.iter().any(|stated| {
                let json = serde_json::to_value(stated).expect("JSON");
                json["estimate"].get("alone").is_some()
            });
            assert!(says_why || !has_any, "{name}, {named}");
        }
        of_json(&serde_json::to_value(&run.summary).expect("a summary is JSON"));
    }
    assert_eq!(counts.len(), 6, "{counts:?}");
    assert!(counts.values().all(|count| *count > 50) && corrected > 3, "{counts:?}, {corrected}");
}

/// A topology of three tenants, or of one, whose sidecars add what chance may or may not explain to the medians of calls, the 99th
/// percentiles of drivers and the CPU of services.
fn topology(seed: u64) -> RunData {
    let mut chance = Chance::new(seed);
    let mut trials = fixture::tiered::tiered_trials(if seed.is_multiple_of(2) { 1 } else { 3 });
    for trial in &mut trials {
        let of_mode = if trial.mode == Mode::None { 1.0 } else { 1.0 + 0.04 * (seed % 6) as f64 };
        let mut noisy = |value: f64| value * of_mode * (0.02 * chance.normal()).exp();
        for times in trial.edges.iter_mut().filter_map(|edge| edge.response_time_us.as_mut()) {
            times.p50 = Some(noisy(200.0));
        }
        for usage in &mut trial.components {
            (usage.cpu_user_s, usage.cpu_system_s) = (noisy(0.03), noisy(0.03));
        }
        for (place, driver) in trial.drivers.iter_mut().enumerate() {
            let slower = if place == 2 { of_mode } else { 1.0 };
            let times = &mut driver.result.as_mut().expect("the fixture has a result").response_time_us;
            times.p99 = Some(slower * noisy(1000.0));
        }
    }
    fixture::run(trials)
}

/// Interval of a figure of the only copy of a call or service in a cell.
fn interval_of(cell: &Cell, kind: FindingKind, name: &str) -> Option<[f64; 2]> {
    let of_call = cell
        .edges
        .iter()
        .find(|edge| format!("{} → {}", local_name(&edge.from), local_name(&edge.to)) == name);
    let of_service = cell.services.iter().find(|service| service.name == name);
    let estimate = match kind {
        FindingKind::GreatestAddedTime => of_call?.response_time_us?.p50?,
        _ => of_service?.total_cpu_cores.or(of_service?.cpu_cores)?,
    };
    Some([estimate.low?, estimate.high?])
}

#[test]
fn calls_services_and_drivers_say_why_they_are_not_shown_beside_disjoint_intervals() {
    let of_greatest =
        [FindingKind::SlowestDriver, FindingKind::GreatestAddedTime, FindingKind::GreatestAddedCpu];
    let (mut shown, mut corrected, mut disjoint) = (0, 0, 0);
    for seed in 0..60 {
        let run = topology(seed);
        of_json(&serde_json::to_value(&run.summary).expect("a summary is JSON"));
        for stated in run.summary.findings.iter().filter(|one| of_greatest.contains(&one.finding.kind())) {
            let kind = stated.finding.kind();
            let greatest = match &stated.finding {
                Finding::SlowestDriver(one) => &one.content,
                Finding::GreatestAddedTime(one) | Finding::GreatestAddedCpu(one) => &one.content.greatest,
                other => panic!("{other:?}"),
            };
            let is_shown = greatest.verdict == FindingVerdict::Shown;
            let says_why = stated.detail.contains(" comparisons in this run, chance is not excluded.");
            assert_eq!(says_why, greatest.difference.alone.is_some(), "seed {seed}: {stated:?}");
            assert!(!is_shown || !says_why, "seed {seed}: {stated:?}");
            (shown, corrected) = (shown + usize::from(is_shown), corrected + usize::from(says_why));
            if says_why {
                for (name, output) in outputs(&run) {
                    assert!(output.contains("chance is not excluded"), "{name}, seed {seed}");
                }
            }
            if kind == FindingKind::SlowestDriver || seed % 2 == 1 {
                continue;
            }
            let ends = [Mode::None, Mode::Sidecar].map(|mode| {
                let cell = run.summary.cells.iter().find(|cell| cell.mode == mode).expect("a cell");
                interval_of(cell, kind, &greatest.subject).expect("an interval")
            });
            if ends[0][1] < ends[1][0] {
                disjoint += 1;
                assert!(is_shown || says_why, "seed {seed}: {ends:?}, {stated:?}");
            }
        }
    }
    assert!(shown > 10 && corrected > 5 && disjoint > 10, "{shown}, {corrected}, {disjoint}");
}

#[test]
fn excluded_trials_have_one_number_in_all_outputs() {
    for trials in [fixture::usual_trials(), fixture::retaken_trials(), fixture::invalid_trials()] {
        let run = fixture::run(trials);
        let excluded: usize = run.summary.cells.iter().map(|cell| cell.excluded).sum();
        let recorded = run.summary.trials_recorded;
        let are = if excluded == 1 { "is" } else { "are" };
        let sentence = format!("{excluded} of {recorded} trials {are} excluded from the estimates");
        assert!(run.summary.findings.iter().any(|stated| stated.text.starts_with(&sentence)), "{sentence}");
        for (name, output) in outputs(&run) {
            let lines = output.lines().filter_map(|line| line.split_once("Excluded: ")?.1.split(' ').next());
            let listed: usize = lines.map(|count| count.parse::<usize>().expect("a number")).sum();
            assert!(output.contains(&sentence), "{name}: {sentence}");
            assert!(name == "HTML" || listed == excluded, "{name}: {listed}, not {excluded}");
            let flag = format!("<span class=\"flag\">{excluded} of {recorded} trials</span>");
            assert!(name != "HTML" || output.contains(&flag), "{flag}: {output}");
        }
        let junit = report::junit::render(&run);
        let cases = run.trials.iter().filter(|trial| statistics::is_excluded(trial)).count();
        assert_eq!(cases, excluded);
        assert_eq!(junit.matches("name=\"trial ").count(), excluded, "{junit}");
    }
}

#[test]
fn only_driver_of_a_cell_has_the_intervals_of_the_cell() {
    let run = fixture::run(fixture::usual_trials());
    let columns = ["p50_us_low", "p50_us_high", "p99_us_low", "rate_completed_high"];
    let fields = |table: &str| -> Vec<Vec<String>> {
        let mut lines = table.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let names = lines.next().expect("a header");
        let place = |column: &&str| names.iter().position(|name| name == column).expect("a column");
        lines.map(|line| columns.iter().map(|column| line[place(column)].clone()).collect()).collect()
    };
    let of_cells = fields(&report::cells_csv::table(&run.summary));
    assert_eq!(of_cells, fields(&report::drivers_csv::drivers(&run.summary)));
    assert!(of_cells.iter().flatten().filter(|field| !field.is_empty()).count() > 12, "{of_cells:?}");
}

#[test]
fn cpu_of_a_service_has_one_interval_in_the_tables_of_services_and_components() {
    let run = fixture::run(fixture::tiered::tiered_trials(1));
    let mut compared = 0;
    for cell in &run.summary.cells {
        for service in &cell.services {
            let pod = format!("{}/{}", service.namespace, service.name);
            let figures =
                [(&service.cpu_cores, pod.clone()), (&service.proxy_cpu_cores, format!("{pod}-proxy"))];
            for (own, name) in figures {
                let component = cell.components.iter().find(|one| one.name == name);
                let (Some(own), Some(component)) = (own, component) else { continue };
                assert_eq!(*own, component.cpu_cores, "{name}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 4 + 4 + 4, "services of both modes, and the proxies of one");
}

/// Every verdict of an effect in JSON agrees with the interval beside it.
fn of_json(json: &Json) {
    let estimate = |field: &str| serde_json::from_value::<Estimate>(json[field].clone()).ok();
    let kinds = ["path", "objective", "driver-objective", "footprint", "published", "machine-pauses"];
    let is_effect = !kinds.iter().any(|kind| json["kind"] == *kind);
    if let (Some(verdict), Some(difference), true) =
        (json["verdict"].as_str(), estimate("estimate"), is_effect)
    {
        match verdict {
            "shown" => assert!(difference.excludes_zero(), "{json}"),
            _ => assert!(!difference.excludes_zero(), "{json}"),
        }
    }
    match json {
        Json::Array(items) => items.iter().for_each(of_json),
        Json::Object(fields) => fields.values().for_each(of_json),
        _ => {}
    }
}

#[test]
fn cells_are_planned_once_for_all_that_cannot_touch_them() {
    for design in DESIGNS {
        let experiment = design.experiment();
        let run = design.run(1);
        assert_eq!(run.summary.cells.len(), design.cells, "{}", design.text);
        assert_eq!(run.trials.len(), design.cells * experiment.repeats, "{}", design.text);
        for trial in &run.trials {
            let touches = |key: &String| experiment.touches_cells(trial.mode, &trial.factors, key);
            assert!(trial.factors.keys().all(touches), "{} {:?}", trial.mode, trial.factors);
        }
    }
}

#[test]
fn call_slower_than_its_caller_is_explained() {
    let note = "b → c takes longer (p99 ";
    for seed in 0..5 {
        for (name, output) in outputs(&synchronous(1.0, seed)) {
            assert!(!output.contains("takes longer"), "{name}, seed {seed}");
        }
        let run = synchronous(0.05, seed);
        let cells = run.summary.cells.iter();
        let p99 = |cell: &results::Cell| {
            cell.edges
                .iter()
                .filter_map(|edge| Some(edge.response_time_us?.p99?.estimate))
                .collect::<Vec<_>>()
        };
        assert!(cells.map(p99).all(|times| times[1] > times[0]), "the rare call is slower at p99");
        for (name, output) in outputs(&run) {
            assert_eq!(output.matches(note).count(), 2, "{name}, seed {seed}: {output}");
            assert!(output.contains("of them make this call"), "{name}, seed {seed}");
        }
    }
}
