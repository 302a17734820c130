//! Structure of the HTML report, for every kind of run.

#[path = "page/faults.rs"]
mod faults;
mod fixture;
#[path = "page/kinds_of_runs.rs"]
mod kinds_of_runs;

use report::RunData;
use report::html::render;
use report::svg::escape;
use report::terminal::Options;
use results::{
    Build, ComponentSummary, Estimate, FactorValue, Factors, FurtherDomain, GatewayRecord, LoadPoint, Metric,
    Mode, NodeUsage, ProxyConfiguration, ProxyFootprint, Rates, Role, SeriesPoint, SpinPauses, TracedProxy,
    TracingProof, TrialRecord, UnavailableMode,
};

/// The page, with checks that apply to every page.
fn page(run: &RunData) -> String {
    let page = render(run);
    assert!(page.starts_with("<!doctype html>"));
    for outside in ["http:", "https:", "//", "<script", "<link", "<img", "<iframe", "@import", "url("] {
        let text = page.replace("http://10.77.0.3", "");
        assert!(!text.contains(outside), "the page has {outside:?}: {}", around(&text, outside));
    }
    for broken in ["NaN", "inf\"", "undefined", "{{", "{%"] {
        assert!(!page.contains(broken), "the page has {broken:?}: {}", around(&page, broken));
    }
    assert_eq!(page.matches("<section").count(), page.matches("</section>").count());
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert_eq!(page.matches("<table").count(), page.matches("<caption").count(), "every table has a caption");
    assert_eq!(page.matches("<h1").count(), 1);
    for svg in page.split("<svg class=\"chart\"").skip(1) {
        let head = svg.split("</svg>").next().unwrap_or_default();
        assert!(head.contains("<title id=") && head.contains("<desc id="), "{head}");
    }
    unique_ids(&page);
    page
}

fn around(text: &str, part: &str) -> String {
    let at = text.find(part).unwrap_or(0);
    text.chars().skip(text[..at].chars().count().saturating_sub(80)).take(200).collect()
}

fn unique_ids(page: &str) {
    let mut ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id is there twice");
}

/// Text as templates write it: they also escape the slash.
fn shown(text: &str) -> String {
    escape(text).replace('/', "&#x2f;")
}

fn has_section(page: &str, id: &str) -> bool {
    page.contains(&format!("<section id=\"{id}\">"))
}

fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let rest = page.split(&format!("<section id=\"{id}\">")).nth(1).expect("the section");
    rest.split("</section>").next().unwrap_or_default()
}

/// The text of a section without its drawings, one line per element.
fn words_of(section: &str) -> String {
    let without_drawings = section
        .split("<svg")
        .enumerate()
        .map(|(index, part)| if index == 0 { part } else { part.split("</svg>").nth(1).unwrap_or_default() });
    let text: String = without_drawings.collect();
    let texts = text.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text.trim());
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn usual_run_has_every_section() {
    let run = fixture::run(fixture::usual_trials());
    let page = page(&run);
    for id in [
        "glance",
        "percentiles",
        "added",
        "resources",
        "holdings",
        "trials",
        "left-out",
        "path",
        "published",
        "machine",
        "method",
        "repeat",
        "tables",
    ] {
        assert!(has_section(&page, id), "no section {id}");
    }
    let headline = page.find("id=\"headline\"").unwrap();
    assert!(headline < page.find("<section").unwrap(), "the answer comes first");
    for text in [
        "other-process: dpkg used 0.62 cores",
        "[critical] error initializing configuration",
        "service time hides a pause",
        "AMD EPYC 9354P",
        "6.18.5",
        "Seed 42",
        "connections: 4, rate: [500, 1000]",
        "28 of 30 trials valid",
    ] {
        assert!(page.contains(&shown(text)), "the page does not say {text:?}");
    }
    // Three modes at two rates, median and tail of every trial with a result: one dot each, or a cross for an
    // excluded trial.
    assert_eq!(page.matches("<title>trial ").count(), 2 * 29);
    assert_eq!(page.matches(", unusable: other-process: dpkg").count(), 2);
}

#[test]
fn build_is_named_with_commit_and_state_of_tree() {
    let mut run = fixture::run(fixture::usual_trials());
    run.host.build = Some(Build {
        version: "0.1.0".to_owned(),
        commit: Some("6f9fdd3b0a1b2c3d".to_owned()),
        commit_date: Some("2026-11-27".to_owned()),
        modified: Some(true),
    });
    assert!(page(&run).contains("0.1.0 (6f9fdd3b 2026-11-27, modified)"));
}

#[test]
fn unavailable_modes_are_named_with_components_if_any() {
    let mut run = fixture::run(fixture::usual_trials());
    let build = FactorValue::Text("1.29.4".to_owned());
    let unavailable = |mode, factors| UnavailableMode {
        mode,
        factors,
        reason: "there is no ztunnel".to_owned(),
        hint: Some("name one".to_owned()),
    };
    run.host.refused_modes = vec![
        unavailable(Mode::Ambient, Factors::default()),
        unavailable(Mode::AmbientWaypoint, [("components.istio".to_owned(), build)].into()),
    ];
    let text = words_of(section(&page(&run), "left-out"));
    for part in [
        "ambient: there is no ztunnel",
        "(name one)",
        "ambient-waypoint, components.istio 1.29.4: there is no ztunnel",
    ] {
        assert!(text.contains(part), "{}", around(&text, "could not run"));
    }
}

#[test]
fn modes_are_compared_by_every_figure_in_table_of_comparisons() {
    let run = fixture::run(fixture::usual_trials());
    let page = page(&run);
    let table = section(&page, "tables").split("Each mode against each other").nth(1).expect("the table");
    let table = table.split("</table>").next().unwrap_or_default();
    assert_eq!(table.matches(">none</td>").count(), 4, "two modes at two rates");
    assert!(!table.contains("\"></td>"), "a cell is empty: {table}");
}

#[test]
fn proxy_holdings_are_shown_with_warnings() {
    let mut run = fixture::run(fixture::usual_trials());
    let proxies = run.summary.cells.iter_mut().filter(|cell| cell.mode == Mode::Sidecar);
    for proxy in
        proxies.flat_map(|cell| &mut cell.components).filter(|component| component.name == "client-proxy")
    {
        let configured_in_s =
            Estimate { estimate: 0.342, low: Some(0.31), high: Some(0.37), n: 3, alone: None };
        proxy.estimates.set(Metric::ConfiguredInS, Some(configured_in_s));
        let configuration = proxy.configuration.as_mut().expect("the fixture has one");
        configuration.counts.rejected_updates = Some(3);
        configuration.varies = true;
        proxy.unread = vec!["query /memory of client-proxy: no answer within 5000 ms".to_owned()];
    }
    let page = page(&run);
    for text in [
        "<th scope=\"col\" class=\"n\">Clusters</th>",
        "1204",
        "342<span class=\"range\">310–370</span>",
        "client-proxy of sidecar rejected 3 updates: its configuration is not the one that it was sent.",
        "client-proxy of sidecar had different counts in some trials; the greatest are shown.",
    ] {
        assert!(page.contains(text), "the page does not say {text:?}");
    }
    assert!(page.contains(&shown("not read: query /memory of client-proxy: no answer within 5000 ms")));
    // This run has no ztunnel.
    assert!(!page.contains("Workloads"));
}

#[test]
fn envoys_and_ztunnels_have_separate_tables() {
    let page = page(&fixture::run(fixture::trials(&[Mode::Sidecar, Mode::AmbientWaypoint], &[1000.0], 3)));
    let section = page.split("id=\"holdings\"").nth(1).expect("the section is there");
    let section = section.split("</section>").next().expect("it ends");
    let tables: Vec<&str> = section.split("<table").skip(1).collect();
    assert_eq!(tables.len(), 2);
    let has = |table: &str, texts: &[&str]| texts.iter().all(|text| table.contains(text));
    assert!(has(tables[0], &["Clusters", "client-proxy", "waypoint"]) && !has(tables[0], &["ztunnel"]));
    assert!(has(tables[1], &["Workloads", "client-ztunnel"]) && !tables[1].contains("Clusters"));
    assert!(tables[1].contains(" anonymous</text>"), "memory is drawn with what of it is anonymous");
}

#[test]
fn results_of_older_versions_have_no_holdings_section() {
    let mut trials = fixture::usual_trials();
    for component in trials.iter_mut().flat_map(|trial| &mut trial.components) {
        component.memory_before_load_bytes = None;
        component.memory_after_load_bytes = None;
        component.holdings = None;
    }
    assert!(!has_section(&page(&fixture::run(trials)), "holdings"));
}

#[test]
fn single_mode_is_not_compared() {
    let page = page(&fixture::run(fixture::trials(&[Mode::Sidecar], &[1000.0], 3)));
    assert!(!has_section(&page, "added"));
    assert!(!page.contains("Added to median"));
    assert!(has_section(&page, "percentiles"));
}

#[test]
fn service_time_is_shown_if_curve_differs() {
    let stalled = page(&fixture::run(fixture::stalled_trials()));
    let percentiles = section(&stalled, "percentiles");
    assert_eq!(
        percentiles.matches("class=\"service ").count(),
        2,
        "the sidecar's alone, in the chart and its wide drawing"
    );
    assert!(stalled.contains("thin dashed line is service time"));
    let usual = page(&fixture::run(fixture::usual_trials()));
    assert!(!usual.contains("class=\"service ") && !usual.contains("thin dashed line"));
}

#[test]
fn gaps_of_spinning_generators_stand_beside_their_lateness() {
    let mut trials = fixture::usual_trials();
    for trial in trials.iter_mut().filter(|trial| trial.mode == Mode::Sidecar) {
        let generator = &mut trial.result.as_mut().expect("a result").generator;
        generator.pauses = Some(SpinPauses { count: 45, longest_us: 4700.0, total_us: 9e4, spun_s: 5.0 });
    }
    let text = words_of(section(&page(&fixture::run(trials)), "trials"));
    let shown = "Gaps that spinning threads of the generator saw themselves: sidecar at 500&#x2f;s 9.00 per second of \
                 spinning, the longest 4.70\u{a0}ms";
    assert!(text.contains(shown), "{}", around(&text, "Gaps"));
}

#[test]
fn saturated_cell_shows_both_clocks() {
    let page = page(&fixture::run(fixture::saturated_trials()));
    let text = words_of(section(&page, "corrected"));
    let cell = text.split("sidecar at 8000&#x2f;s").nth(2).expect("a chart and a row of the table");
    insta::assert_snapshot!(cell);
    for said in ["is saturated in 3 of 3 trials:", "were completed", "hides the queue"] {
        assert!(page.contains(&shown(said)), "{}", around(&page, "saturated"));
    }
}

#[test]
fn reservations_are_shown_with_usage() {
    let mut run = fixture::run(fixture::trials(&[Mode::None, Mode::Sidecar], &[500.0, 1000.0], 3));
    assert!(!has_section(&page(&run), "reserved"), "a pair reserves nothing");
    fixture::reserve(&mut run.summary);
    let page = page(&run);
    let text = words_of(section(&page, "reserved"));
    assert!(!text.contains("500&#x2f;s"), "the highest load alone: {text}");
    insta::assert_snapshot!(text.split("sidecar at").nth(1).expect("its rows"));
}

#[test]
fn usual_run_has_identical_clocks() {
    let page = page(&fixture::run(fixture::trials(&[Mode::None], &[1000.0], 3)));
    let section = section(&page, "corrected");
    assert!(words_of(section).contains("In every cell both agree"), "{}", words_of(section));
    assert!(!section.contains("<svg"));
    let closed = self::page(&fixture::run(fixture::closed_trials()));
    assert!(!has_section(&closed, "corrected"), "in a closed loop no request waits for its turn");
}

#[test]
fn seconds_of_a_trial_are_collapsed() {
    let mut trials = fixture::trials(&[Mode::None, Mode::Sidecar], &[500.0, 1000.0], 2);
    let second = |t_s: f64| SeriesPoint {
        t_s,
        sent: 1000,
        completed: if t_s > 1.0 { 100 } else { 990 },
        failed: 10,
        p50_us: Some(250.0),
        p90_us: Some(300.0),
        p99_us: (t_s < 1.0).then_some(900.0),
        p99_9_us: None,
        max_us: None,
    };
    for trial in &mut trials {
        let result = trial.result.as_mut().expect("a result");
        result.duration_s = 2.5;
        result.series = [0.0, 1.0, 2.0].map(second).into();
    }
    let page = page(&fixture::run(trials));
    let section = section(&page, "trials");
    assert_eq!(section.matches("<summary>Each second of 4 trials at ").count(), 2);
    assert_eq!(section.matches("id=\"seconds-").count(), 2 * 8);
    // The last second is only half in the window.
    for said in [
        "990/s, 10.0/s failed, p50 250 µs, p99 900 µs",
        "p50 250 µs, p99 no response",
        "200/s, 20.0/s failed",
    ] {
        let said = said.replace(" µs", "\u{a0}µs");
        assert!(section.contains(&said), "{said}: {}", around(section, "failed, p50"));
    }
    assert!(section.contains("Lateness of the generator"));
    assert!(
        has_section(&page, "rates") && self::section(&page, "rates").contains("class=\"band vermilion\"")
    );
}

#[test]
fn single_trial_has_no_interval() {
    let page = page(&fixture::run(fixture::trials(&[Mode::None, Mode::Sidecar], &[1000.0], 1)));
    assert!(page.contains("no interval"));
}

#[test]
fn all_forty_cells_are_shown() {
    let page = page(&fixture::run(fixture::many_trials()));
    // Percentiles, added latency, CPU and memory per load, trials per load, memory of the proxies of four
    // modes, three figures against the rate, and the generator's lateness per load.
    assert_eq!(page.matches("<svg class=\"chart\"").count(), 8 + 3 + 2 * 8 + 8 + 4 + 3 + 8);
}

#[test]
fn closed_loop_shows_throughput() {
    let page = page(&fixture::run(fixture::closed_trials()));
    assert!(has_section(&page, "throughput"));
    for text in ["Requests/s", "Against none, %", "Throughput against none", "CPU of all proxies per request"]
    {
        assert!(page.contains(text), "the page does not say {text:?}");
    }
    assert!(page.contains("<th scope=\"col\" class=\"n\">Mean</th>"));
    assert!(page.contains("all proxies"));
    assert!(!has_section(&self::page(&fixture::run(fixture::usual_trials())), "throughput"));
}

#[test]
fn baseline_of_modes_is_named() {
    let modes = [Mode::EgressBypass, Mode::EgressSidecar];
    let page = page(&fixture::run(fixture::trials(&modes, &[1000.0], 3)));
    assert!(page.contains("Difference to mode <b>egress-bypass</b>"));
    assert!(page.contains("added to the p50 of egress-bypass"));
    assert!(!page.contains("mode <b>none</b>"));
}

#[test]
fn proxy_passed_twice_counts_each_passage() {
    let mut trials = fixture::trials(&[Mode::None, Mode::Ambient], &[1000.0], 2);
    for proof in trials.iter_mut().flat_map(|trial| &mut trial.path.proxies) {
        proof.name = "ztunnel".to_owned();
    }
    let page = page(&fixture::run(trials));
    for passage in ["ztunnel, passage 1 of 2", "ztunnel, passage 2 of 2"] {
        let row = page.split(passage).nth(1).expect("the passage has a row");
        let row = row.split("</tr>").next().unwrap_or_default();
        assert_eq!(row.matches(">8000<").count(), 2, "counted and sent: {row}");
    }
}

#[test]
fn user_programs_are_named_with_digests() {
    let page = page(&fixture::run(fixture::usual_trials()));
    assert!(page.contains("not the installed ones: istiod 1.31-dev"));
    assert!(page.contains(&shown(
        "SHA-256 0123456789ab…; not the installed one: /home/me/istiod, named by an option"
    )));
}

#[test]
fn reasons_are_explained() {
    let page = page(&fixture::run(fixture::invalid_trials()));
    assert!(page.contains("<b>schedule-lag</b>: the generator sent late by its own fault"));
    assert!(!page.contains("<b>saturated</b>"), "what does not occur is not explained");
}

#[test]
fn each_hop_names_its_protocol() {
    let mut trials = fixture::trials(&[Mode::AmbientWaypoint], &[1000.0], 2);
    let report = page(&fixture::run(trials.clone()));
    for part in ["Protocol of each hop", "HTTP/1.1 inside HBONE", "opaque TCP"] {
        assert!(report.contains(&shown(part)), "{part}");
    }
    // Older results do not have hops.
    trials.iter_mut().for_each(|trial| trial.path.hops.clear());
    assert!(!page(&fixture::run(trials)).contains("Protocol of each hop"));
}

#[test]
fn spans_are_shown_if_requests_were_traced() {
    let mut trials = fixture::trials(&[Mode::Gateway], &[1000.0], 3);
    assert!(!page(&fixture::run(trials.clone())).contains("Spans received"));
    for trial in &mut trials {
        let name = trial.path.proxies[0].name.clone();
        let proxy = TracedProxy { name, requests: 400, requests_traced: 100, spans_received: 200 };
        trial.path.tracing = Some(TracingProof { fraction: 0.25, proxies: vec![proxy] });
    }
    let page = page(&fixture::run(trials));
    assert!(page.contains("data-label=\"Spans received for requests traced\">600 for 300</td>"));
}

#[test]
fn every_take_is_shown_with_its_outcome() {
    let page = page(&fixture::run_of(fixture::retaken_trials(), 9));
    for text in [
        "8 of 9 trials valid",
        "2 rerun",
        "3 of 3, 1 rerun",
        "2 of 3, 1 rerun",
        "Rerun as trial 10, which is valid.",
        "Rerun as trial 11, which is excluded too.",
        "Rerun of trial 9.",
        "trial 10 (rerun of trial 2), gateway",
        "each at most 1 time, 3 in all",
        "2 were rerun, 1 of them in the estimates",
    ] {
        assert!(page.contains(&shown(text)), "the page does not say {text:?}");
    }
    assert!(!page.contains("cut short"), "{}", around(&page, "cut short"));
    let without = self::page(&fixture::run(fixture::usual_trials()));
    for text in ["erun of trial", "erun as trial"] {
        assert!(!without.contains(text), "{}", around(&without, text));
    }
}

#[test]
fn fleet_section_has_convergence_control_plane_and_timelines() {
    let page = page(&fixture::fleets::fleet_run("proxies", &["100", "200"]));
    let fleets = section(&page, "fleets");
    insta::assert_snapshot!(words_of(fleets));
    assert_eq!(fleets.matches("<figure>").count(), 2 + 6, "a distribution per cell, a timeline per trial");
    assert!(fleets.contains("istiod-killed, istiod"), "{}", around(fleets, "istiod-killed"));
    let factors = section(&page, "factors");
    assert!(factors.contains("Convergence, 99th percentile") && factors.contains("Memory of istiod"));
    // There is nothing about requests.
    for id in ["glance", "percentiles", "added", "trials"] {
        assert!(!has_section(&page, id), "{id}");
    }
    assert!(!shown(&page).contains("Closed loop"));
}

#[test]
fn kinds_of_proxies_are_compared_by_fleet_figures() {
    let page = page(&fixture::fleets::fleet_run("kind", &["sidecar", "gateway"]));
    insta::assert_snapshot!(words_of(section(&page, "differences")));
}

#[test]
fn single_factor_has_a_chart() {
    let page = page(&fixture::run(fixture::factor_trials(&[("proxy.cpu", &["250m", "500m", "1"])])));
    let factors = section(&page, "factors");
    assert_eq!(factors.matches("<figure>").count(), 4, "median, p90, p99 and CPU");
    assert!(factors.contains("proxy CPU 250m"), "the points say their values");
    insta::assert_snapshot!(words_of(factors));
    insta::assert_snapshot!("table_with_a_factor_column", words_of(section(&page, "glance")));
}

#[test]
fn gateway_section_has_three_observers_and_own_figures() {
    let page = page(&fixture::run(fixture::gateway_trials()));
    let gateways = section(&page, "gateways");
    assert_eq!(gateways.matches("<figure>").count(), 1, "requests per second by phase");
    insta::assert_snapshot!(words_of(gateways));
    assert!(!has_section(&render(&fixture::run(fixture::usual_trials())), "gateways"));
}

#[test]
fn non_numeric_factor_values_are_compared() {
    let trials = fixture::factor_trials(&[("proxy.access-log", &["off", "text", "json"])]);
    let page = page(&fixture::run(trials));
    let differences = section(&page, "differences");
    assert_eq!(differences.matches("<figure>").count(), 3, "median, p99 and CPU");
    insta::assert_snapshot!(words_of(differences));
    assert!(!has_section(&page, "factors"), "no factor has numbers");
}

#[test]
fn two_factors_make_small_multiples() {
    let factors: [(&str, &[&str]); 2] =
        [("load.connections", &["2", "16"]), ("proxy.cpu", &["250m", "500m", "1"])];
    let page = page(&fixture::run(fixture::factor_trials(&factors)));
    let factors = section(&page, "factors");
    assert_eq!(factors.matches("<figure>").count(), 8, "four per number of connections");
    insta::assert_snapshot!(words_of(factors));
    assert!(!has_section(&page, "sizes"));
}
