//! Pages of `meshmeter view` for the browser, and events for their script.

use crate::fixture;
use report::folder::{Existing, ProgressFile, RunFolder};
use report::html::view::{self, Listed, Part};
use results::{
    ComponentSecond, ComponentsSecond, Estimate, Factors, HistoryCourse, HistoryFigure, HistoryRun,
    LatencyHistogram, LoadPoint, Metric, Mode, OwnedCellKey, SeriesPoint, TrialUnderWay,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The script of a run's page.
pub const SCRIPT_OF_RUN: &str = "<script src=\"..&#x2f;..&#x2f;view.js\"></script>";

/// A second of a generator.
pub fn second(t_s: u32) -> SeriesPoint {
    let failed = u64::from(t_s == 2);
    SeriesPoint {
        t_s: t_s.into(),
        completed: 12_345,
        failed,
        p50_us: Some(1234.5),
        p99_us: Some(98_765.4),
        ..SeriesPoint::default()
    }
}

/// A reading of more components than are drawn; one has no memory of its own.
fn usage(t_s: u32) -> ComponentsSecond {
    let names = (1..=9).map(|number| format!("checkout-of-the-shop-{number}-proxy"));
    let component = |(number, name): (u32, String)| ComponentSecond {
        name,
        cpu_cores: f64::from((number * 7 + t_s) % 5) * 0.3,
        memory_bytes: (number != 3).then_some(52_428_800 + u64::from(t_s * number) * 1_000_000),
    };
    ComponentsSecond { t_s: (t_s + 1).into(), components: (1..).zip(names).map(component).collect() }
}

/// Writes a run that goes on, whose last trial has histograms by second.
pub fn run_under_way(path: &Path) -> ProgressFile {
    let mut run = fixture::run(fixture::usual_trials());
    for result in run.trials.iter_mut().filter_map(|trial| trial.result.as_mut()) {
        result.series = (0..3).map(second).collect();
    }
    let last = run.trials.last_mut().and_then(|trial| trial.result.as_mut()).unwrap();
    let histogram = |number: u64| {
        let mut histogram = LatencyHistogram::new();
        (1..100).for_each(|time| histogram.record(Duration::from_micros(time * time * number)));
        histogram.encode()
    };
    last.series_histograms = (1..=last.series.len() as u64).map(histogram).collect();
    let mut folder = RunFolder::create(path, Existing::Keep).unwrap();
    folder.write_experiment(&run.experiment_yaml).unwrap();
    folder.write_host(&run.host).unwrap();
    folder.write_report("").unwrap();
    run.trials.iter().for_each(|trial| folder.append_trial(trial).unwrap());
    let mut progress = ProgressFile::new(path);
    progress.begin(TrialUnderWay {
        ended: 30,
        trials: 40,
        title: "ambient-waypoint at 12345.5/s, proxy.access-log json, repeat 2, rerun of trial 27".to_owned(),
        started_at: "2026-11-20T10:00:00Z".to_owned(),
        rest_s: 345.6,
        ..TrialUnderWay::default()
    });
    for t_s in 0..4 {
        ["generator-1", "generator-2"].iter().for_each(|name| progress.second(name, &second(t_s)));
        progress.components(&usage(t_s));
    }
    progress
}

/// The page with its script, which gets these parts and a row by events that are sent at once.
pub fn with_events(page: &str, parts: &[Part], row: &str) -> String {
    let json = |text: &str| serde_json::to_string(text).unwrap().replace("</", "<\\/");
    let parts: String = parts
        .iter()
        .map(|part| format!("send({}, {});\n", json(&format!("part-{}", part.name)), json(&part.html)))
        .collect();
    let scripts = format!(
        "<script>window.EventSource = class extends EventTarget {{ constructor() {{ super(); window.source = this; }} }};</script>
        <script>{}</script>
        <script>
        const send = (type, data) => source.dispatchEvent(new MessageEvent(type, {{ data }}));
        const check = (what, holds) => {{ if (!holds) console.error(what); }};
        const rows = document.getElementById(\"trials\").rows;
        const before = rows.length;
        document.getElementById(\"trials\").dataset.most = before + 1;
        for (let number = 0; number < 3; number += 1) send(\"trial\", {});
        check(\"a row is added in first place, and the oldest one removed\", rows.length === before + 1 && rows[0].innerHTML === rows[2].innerHTML);
        send(\"error\");
        check(\"a lost connection is said\", !document.getElementById(\"connection\").hidden);
        {parts}
        check(\"the state is replaced\", document.getElementById(\"state\").textContent.includes(\"no summary\"));
        check(\"no trial is under way\", document.getElementById(\"now\").textContent.trim() === \"\");
        check(\"reports are linked\", document.querySelector(\"#links a\").getAttribute(\"href\") === \"report.html\");
        </script>",
        view::SCRIPT,
        json(row)
    );
    assert!(page.contains(SCRIPT_OF_RUN), "the page has a script");
    page.replace(SCRIPT_OF_RUN, &scripts)
}

/// A list with names as they come.
pub fn list() -> String {
    let entry = |(name, kind, state, flagged): (&str, &'static str, &str, bool)| Listed {
        href: "run/-x/".to_owned(),
        name: name.to_owned(),
        kind,
        state: state.to_owned(),
        flagged,
        changed: "2026-11-20 09:49 UTC".to_owned(),
    };
    let entries = [
        ("runs/sidecar-cost-20261120-094900", "run", "in progress: trial 5 of 20", false),
        (
            "a/<script>alert(1)</script>/a-name-that-is-longer-than-a-phone-is-wide-and-has-no-space",
            "run",
            "ended",
            false,
        ),
        ("compared", "comparison", "worse", true),
        ("damaged", "run", "damaged: no experiment.yaml, no host.json", true),
        ("nightly.jsonl", "history", "", false),
    ];
    view::list("Runs in runs", view::list_part(&entries.map(entry), 12))
}

/// Course of a history of more runs than a chart has marks, in which one of two figures changes.
pub fn history() -> HistoryCourse {
    let cell = OwnedCellKey { mode: Mode::Sidecar, factors: Factors::new(), load: LoadPoint::of_fleet() };
    let figure = |key, value| HistoryFigure { key, cell: cell.clone(), estimate: Estimate::single(value) };
    let run = |number: u32| {
        let wobble = f64::from(number * 7 % 5);
        let time = 380.0 + wobble + if number < 90 { 0.0 } else { 45.0 };
        HistoryRun {
            run: format!("runs/{number}"),
            label: Some(format!("commit <b>{number}</b> {}", "of-a-long-name".repeat(8))),
            source: "run".to_owned(),
            name: "sidecar-cost".to_owned(),
            environment: BTreeMap::from([("kernel".to_owned(), "6.1".repeat(60))]),
            programs: BTreeMap::from([("envoy".to_owned(), format!("1.{}", 35 + number / 90))]),
            figures: vec![
                figure(Metric::RateCompleted, 1000.0 + wobble),
                figure(Metric::ResponseTimeP50Us, time),
            ],
            ..HistoryRun::default()
        }
    };
    statistics::history::course("nightly.jsonl", &(0..150).map(run).collect::<Vec<_>>(), &[7])
}
