//! Structure of the HTML report, for every kind of run.

mod fixture;

use experiment::Mode;
use experiment::schema::{
    Estimate, FactorValue, Factors, FurtherDomain, GatewayRecord, LoadPoint, ProxyConfiguration,
    ProxyHoldings, Rates, Role, SeriesPoint, TracedProxy, TracingProof, TrialRecord,
};
use report::RunData;
use report::html::render;
use report::svg::escape;
use report::terminal::Options;

/// The page, checked for what every page must be.
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

/// Text as templates write it: they escape the slash too.
fn shown(text: &str) -> String {
    escape(text).replace('/', "&#x2f;")
}

fn has_section(page: &str, id: &str) -> bool {
    page.contains(&format!("<section id=\"{id}\">"))
}

#[test]
fn the_usual_run_has_every_section() {
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
    // Three modes at two rates, median and tail of every trial with a result: a dot each, and its cross where it is out.
    assert_eq!(page.matches("<title>trial ").count(), 2 * 29);
    assert_eq!(page.matches(", spoiled: other-process: dpkg").count(), 2);
}

#[test]
fn what_the_size_of_the_mesh_costs_has_a_section_of_its_own() {
    let run = fixture::run(fixture::sized_trials());
    let sized = page(&run);
    assert!(has_section(&sized, "sizes"));
    for text in [
        "among 0 and 1000 other services",
        "sidecar, client-proxy",
        "anonymous memory, kB",
        "Requests among 1000 other services against those among 0.",
        "sidecar among 1000 other services",
        "1000/s, 1000 other services",
    ] {
        assert!(sized.contains(&shown(text)), "the page does not say {text:?}");
    }
    let section = sized.split("<section id=\"sizes\">").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(section.contains("90.0") || section.contains("90"), "{section}");
    assert!(!has_section(&page(&fixture::run(fixture::usual_trials())), "sizes"));
}

fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let rest = page.split(&format!("<section id=\"{id}\">")).nth(1).expect("the section");
    rest.split("</section>").next().unwrap_or_default()
}

/// The text of a section without its drawings, a line per element.
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
fn a_fleet_has_its_convergence_control_plane_and_timelines() {
    let page = page(&fixture::fleets::fleet_run("proxies", &["100", "200"]));
    let fleets = section(&page, "fleets");
    insta::assert_snapshot!(words_of(fleets));
    assert_eq!(fleets.matches("<figure>").count(), 2 + 6, "a distribution per cell, a timeline per trial");
    assert!(fleets.contains("istiod-killed, istiod"), "{}", around(fleets, "istiod-killed"));
    let factors = section(&page, "factors");
    assert!(factors.contains("Convergence, 99th percentile") && factors.contains("Memory of istiod"));
    // Nothing is said of requests.
    for id in ["glance", "percentiles", "added", "trials"] {
        assert!(!has_section(&page, id), "{id}");
    }
    assert!(!shown(&page).contains("Closed loop"));
}

#[test]
fn proxies_never_reached_are_named_and_are_in_no_time() {
    let run = fixture::fleets::fleet_run("proxies", &["100", "200"]);
    let page = page(&fixture::fleets::with_a_proxy_never_reached(run));
    let fleets = words_of(section(&page, "fleets"));
    assert!(fleets.contains("never"), "{fleets}");
    assert!(shown(&page).contains("never got a configuration or a change"));
}

#[test]
fn kinds_of_proxies_are_compared_by_the_figures_of_fleets() {
    let page = page(&fixture::fleets::fleet_run("kind", &["sidecar", "gateway"]));
    insta::assert_snapshot!(words_of(section(&page, "differences")));
}

#[test]
fn one_factor_has_a_chart_against_it() {
    let page = page(&fixture::run(fixture::factor_trials(&[("proxy.cpu", &["250m", "500m", "1"])])));
    let factors = section(&page, "factors");
    assert_eq!(factors.matches("<figure>").count(), 4, "median, p90, p99 and CPU");
    assert!(factors.contains("proxy.cpu 250m"), "the points say their values");
    insta::assert_snapshot!(words_of(factors));
    insta::assert_snapshot!("table_with_a_factor_column", words_of(section(&page, "glance")));
}

#[test]
fn a_swept_cpu_limit_has_its_scaling_law_with_what_is_extrapolated() {
    let mut trials = fixture::factor_trials(&[("proxy.cpu", &["1", "2", "4", "8"])]);
    let mut chance = fixture::Chance::new(7);
    for trial in &mut trials {
        trial.load = LoadPoint { rate: None, clients: Some(20), connections: 20, ..trial.load.clone() };
        let cores = trial.factors["proxy.cpu"].quantity("proxy.cpu").unwrap();
        let throughput = 4000.0 * cores / (1.0 + 0.05 * (cores - 1.0)) * (1.0 + 0.02 * chance.normal());
        let result = trial.result.as_mut().unwrap();
        result.rate = Rates { offered: None, sent: throughput, completed: throughput };
    }
    let run = fixture::run(trials);
    let law = &run.summary.scaling.as_ref().expect("a law").main;
    assert_eq!((law.factor.as_str(), law.measured.to), ("proxy.cpu", 8.0));
    assert!((law.parameters.lambda.estimate / 4000.0 - 1.0).abs() < 0.1, "{:?}", law.parameters);
    let page = page(&run);
    let scaling = section(&page, "scaling");
    assert!(scaling.contains("curve dashed") && scaling.contains("Beyond 1 to 8 nothing was measured"));
    let text = report::terminal::render(&run.summary, Options { width: 120, colours: false });
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("by the Universal Scalability Law"), "{text}");
}

/// 1000 domains hold 126 MB in this run, each 126 kB, and make a further one 3 s later.
#[test]
fn domains_of_a_gateway_have_their_cost_and_the_time_of_a_further_one() {
    let mut trials = fixture::gateway_trials();
    for trial in &mut trials {
        let domains = if trial.factors["gateway.cpu"].to_string() == "100m" { 100_u64 } else { 1100 };
        trial.factors = Factors::from([("ingress.domains".to_owned(), FactorValue::Number(domains.into()))]);
        for usage in trial.components.iter_mut().filter(|usage| usage.role == Role::Proxy) {
            let configuration = ProxyConfiguration { size_bytes: 126_000 * domains, ..Default::default() };
            usage.holdings =
                Some(ProxyHoldings { configuration: Some(configuration), ..ProxyHoldings::default() });
        }
        trial.further_domain = Some(FurtherDomain {
            gateway: "gateway".to_owned(),
            in_force_s: Some(0.2 + 0.003 * domains as f64),
            ..FurtherDomain::default()
        });
    }
    let page = page(&fixture::run(trials));
    let words = words_of(section(&page, "domains"));
    assert!(words.contains("1000 domains, gateway"), "{words}");
    assert!(words.contains("126"), "MB of configuration for each thousand: {words}");
    assert!(words.contains("Time until a further domain is in force"), "{words}");
    assert!(!has_section(&render(&fixture::run(fixture::usual_trials())), "domains"));
}

#[test]
fn many_gateways_are_folded() {
    let mut trials = fixture::gateway_trials();
    for trial in &mut trials {
        let gateway = trial.gateways[0].clone();
        let named =
            |number: usize| GatewayRecord { name: format!("tenant-{number}-gateway"), ..gateway.clone() };
        trial.gateways = (1..=12).map(named).collect();
    }
    let run = fixture::run(trials);
    let page = page(&run);
    let gateways = section(&page, "gateways");
    assert!(gateways.contains("All 12 gateways of gateway at"), "{gateways}");
    let (shown, folded) = gateways.split_once("<details>").expect("a folded list");
    let cells = run.summary.cells.len();
    assert_eq!(shown.matches("-gateway</th>").count(), 5 * cells);
    assert_eq!(folded.matches("-gateway</th>").count(), 12 * cells);
    let text = report::terminal::render(&run.summary, Options { width: 120, colours: false });
    assert!(text.contains("The 5 with most CPU of 12"), "{text}");
}

#[test]
fn a_gateway_has_a_section_with_three_observers_and_its_own_figures() {
    let page = page(&fixture::run(fixture::gateway_trials()));
    let gateways = section(&page, "gateways");
    assert_eq!(gateways.matches("<figure>").count(), 1, "requests per second by phase");
    insta::assert_snapshot!(words_of(gateways));
    assert!(!has_section(&render(&fixture::run(fixture::usual_trials())), "gateways"));
}

#[test]
fn values_of_a_factor_that_are_words_are_compared() {
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

#[test]
fn several_drivers_and_services_have_sections_of_their_own() {
    let five = page(&fixture::run(fixture::tenant_trials(5)));
    for text in ["tenant-5/generator", "slowest tenant-5/generator", "tenant-1/c", "not shown", "missed"] {
        assert!(five.contains(&shown(text)), "the page does not say {text:?}");
    }
    let drivers = |page: &str| {
        page.split("<section id=\"drivers\">").nth(1).unwrap().split("</section>").next().unwrap().to_owned()
    };
    assert_eq!(drivers(&five).matches("<details open>").count(), 2);
    assert_eq!(drivers(&five).matches("<details>").count(), 0);
    let fifty = drivers(&page(&fixture::run(fixture::tenant_trials(50))));
    assert_eq!(fifty.matches("<details open>").count(), 2, "the slowest of two cells");
    assert_eq!(
        (fifty.matches("<details>").count(), fifty.matches("<tr><th scope=\"row\">").count()),
        (2, 2 * 5 + 100)
    );
    let pair = page(&fixture::run(fixture::usual_trials()));
    assert!(!has_section(&pair, "drivers") && !has_section(&pair, "services"));
}

#[test]
fn calls_between_services_have_a_section_and_older_runs_have_none() {
    let five = page(&fixture::run(fixture::tiered::tiered_trials(5)));
    let edges = section(&five, "edges");
    assert_eq!(edges.matches("<figure>").count(), 1, "a chart for the only load");
    assert_eq!(edges.matches(">20 edges: ").count() + edges.matches(": 20 edges: ").count(), 2, "{edges}");
    for text in
        ["All 20 edges", "slowest tiered-5/a → tiered-5/b2", "5 of 5", "medians with the range over copies"]
    {
        assert!(edges.contains(&shown(text)), "the page does not say {text:?}");
    }
    let services = section(&five, "services");
    assert!(
        services.contains("CPU of proxies") && services.contains("of the proxies in their pods"),
        "{services}"
    );
    let without = page(&fixture::run(fixture::tenant_trials(5)));
    assert!(!has_section(&without, "edges") && !has_section(&without, "graph"));
    assert!(!section(&without, "services").contains("CPU of proxies"));
}

#[test]
fn text_from_elsewhere_is_never_markup() {
    let evil = "</title></style><script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
    let mut run = fixture::run(fixture::usual_trials());
    run.summary.name = evil.to_owned();
    run.summary.question = evil.to_owned();
    run.summary.findings = vec![fixture::said(evil), fixture::said(evil)];
    run.experiment_yaml = evil.to_owned();
    run.notes = vec![evil.to_owned()];
    run.host.cpu_model = evil.to_owned();
    run.host.versions[0].version = evil.to_owned();
    for figure in &mut run.summary.published {
        figure.differs = evil.to_owned();
    }
    for cell in &mut run.summary.cells {
        cell.verdict = evil.to_owned();
        for component in &mut cell.components {
            component.name = evil.to_owned();
            component.unread = vec![evil.to_owned()];
        }
    }
    for trial in &mut run.trials {
        trial.verdict.reasons.push(evil.to_owned());
        trial.verdict.notes.push(evil.to_owned());
        trial.log_tails.insert(evil.to_owned(), vec![evil.to_owned()]);
        trial.started_at = evil.to_owned();
        trial.load.protocol = evil.to_owned();
        for proxy in &mut trial.path.proxies {
            proxy.name = evil.to_owned();
        }
    }
    for cell in &mut run.summary.cells {
        cell.load.protocol = evil.to_owned();
    }
    let page = render(&run);
    assert!(!page.contains("<script") && !page.contains("<img"), "{}", around(&page, "<script"));
    assert_eq!(page.matches("</style>").count(), 1);
    assert!(page.contains(&shown("<script>alert(1)</script>")), "shown as text");
}

#[test]
fn figures_that_are_missing_break_nothing() {
    let mut run = fixture::run(fixture::usual_trials());
    let missing =
        Estimate { estimate: f64::NAN, low: Some(f64::NEG_INFINITY), high: Some(f64::INFINITY), n: 2 };
    for cell in &mut run.summary.cells {
        if let Some(times) = &mut cell.response_time_us {
            times.p50 = Some(missing);
        }
        if let Some(added) = &mut cell.added_us {
            added.p99 = Some(missing);
        }
        for component in &mut cell.components {
            component.cpu_cores = missing;
            component.memory_bytes = Some(missing);
            component.memory_before_load_bytes = Some(missing);
            component.configured_in_s = Some(missing);
            if let Some(configuration) = &mut component.configuration {
                configuration.size_bytes = missing;
            }
        }
    }
    for trial in &mut run.trials {
        if let Some(result) = &mut trial.result {
            result.response_time_us.p50 = Some(f64::NAN);
            result.duration_s = f64::NAN;
        }
    }
    page(&run);
}

#[test]
fn figures_of_hundreds_of_digits_break_nothing() {
    let mut run = fixture::run(fixture::usual_trials());
    for trial in &mut run.trials {
        if let Some(result) = &mut trial.result {
            result.response_time_us.p99 = Some(1e308);
        }
    }
    page(&run);
}

#[test]
fn a_histogram_that_cannot_be_read_is_said() {
    let mut run = fixture::run(fixture::usual_trials());
    let spoilt = run
        .trials
        .iter_mut()
        .find(|trial| trial.mode == Mode::Gateway)
        .and_then(|trial| trial.result.as_mut());
    spoilt.expect("there is such a trial").response_time_us.histogram = "AAAA".to_owned();
    let page = page(&run);
    assert!(page.contains(&shown("No curve for gateway at 500/s")), "the page does not say so");
    assert!(has_section(&page, "percentiles"), "the other curves stay");
}

#[test]
fn a_run_without_a_valid_trial_still_says_what_happened() {
    let page = page(&fixture::run(fixture::invalid_trials()));
    assert!(page.contains("schedule-lag: p99 2.31 ms"));
    for id in ["left-out", "trials", "machine", "repeat"] {
        assert!(has_section(&page, id), "no section {id}");
    }
    for id in ["percentiles", "added", "resources", "holdings"] {
        assert!(!has_section(&page, id), "section {id} without a figure");
    }
}

#[test]
fn a_run_without_any_trial_says_that_nothing_was_measured() {
    let page = page(&fixture::run_of(vec![], 30));
    assert!(page.contains("0 of 30 planned trials"), "{page}");
    assert!(page.contains("No trial was recorded."), "{page}");
}

#[test]
fn a_run_cut_short_says_so_first() {
    let trials: Vec<TrialRecord> = fixture::usual_trials().into_iter().take(14).collect();
    let page = page(&fixture::run_of(trials, 30));
    let warning = page.find("14 of 30 planned trials").expect("the page says that the run was cut short");
    assert!(warning < page.find("<section").unwrap());
}

#[test]
fn what_each_proxy_holds_is_shown_with_what_is_wrong_with_it() {
    let mut run = fixture::run(fixture::usual_trials());
    let proxies = run.summary.cells.iter_mut().filter(|cell| cell.mode == Mode::Sidecar);
    for proxy in
        proxies.flat_map(|cell| &mut cell.components).filter(|component| component.name == "client-proxy")
    {
        proxy.configured_in_s = Some(Estimate { estimate: 0.342, low: Some(0.31), high: Some(0.37), n: 3 });
        let configuration = proxy.configuration.as_mut().expect("the fixture has one");
        configuration.counts.rejected_updates = Some(3);
        configuration.varies = true;
        proxy.unread = vec!["ask client-proxy for /memory: no answer within 5000 ms".to_owned()];
    }
    let page = page(&run);
    for text in [
        "<th scope=\"col\" class=\"n\">Clusters</th>",
        "1204",
        "342<span class=\"range\">310–370</span>",
        "client-proxy of sidecar refused 3 updates: it does not hold what it was sent.",
        "client-proxy of sidecar held other counts in some trials; the greatest are shown.",
    ] {
        assert!(page.contains(text), "the page does not say {text:?}");
    }
    assert!(page.contains(&shown("not read: ask client-proxy for /memory: no answer within 5000 ms")));
    // No proxy of this run is a ztunnel.
    assert!(!page.contains("Workloads"));
}

#[test]
fn envoys_and_ztunnels_have_a_table_each_of_what_they_count() {
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
fn results_of_older_versions_say_nothing_of_what_the_proxies_hold() {
    let mut trials = fixture::usual_trials();
    for component in trials.iter_mut().flat_map(|trial| &mut trial.components) {
        component.memory_before_load_bytes = None;
        component.memory_after_load_bytes = None;
        component.holdings = None;
    }
    assert!(!has_section(&page(&fixture::run(trials)), "holdings"));
}

#[test]
fn one_mode_alone_is_not_compared() {
    let page = page(&fixture::run(fixture::trials(&[Mode::Sidecar], &[1000.0], 3)));
    assert!(!has_section(&page, "added"));
    assert!(!page.contains("Added to median"));
    assert!(has_section(&page, "percentiles"));
}

#[test]
fn service_time_is_shown_where_it_is_another_curve() {
    let stalled = page(&fixture::run(fixture::stalled_trials()));
    let percentiles = section(&stalled, "percentiles");
    assert_eq!(percentiles.matches("class=\"service ").count(), 1, "the sidecar's alone");
    assert!(stalled.contains("thin dashed line is service time"));
    let usual = page(&fixture::run(fixture::usual_trials()));
    assert!(!usual.contains("class=\"service ") && !usual.contains("thin dashed line"));
}

#[test]
fn a_saturated_cell_shows_both_clocks() {
    let page = page(&fixture::run(fixture::saturated_trials()));
    let text = words_of(section(&page, "corrected"));
    let cell = text.split("sidecar at 8000&#x2f;s").nth(2).expect("a chart and a row of the table");
    insta::assert_snapshot!(cell);
    for said in ["is saturated in 3 of 3 trials:", "were completed", "hides the queue"] {
        assert!(page.contains(&shown(said)), "{}", around(&page, "saturated"));
    }
}

#[test]
fn what_pods_reserve_stands_beside_what_they_use() {
    let mut run = fixture::run(fixture::trials(&[Mode::None, Mode::Sidecar], &[500.0, 1000.0], 3));
    assert!(!has_section(&page(&run), "reserved"), "a pair reserves nothing");
    fixture::reserve(&mut run.summary);
    let page = page(&run);
    let text = words_of(section(&page, "reserved"));
    assert!(!text.contains("500&#x2f;s"), "the highest load alone: {text}");
    insta::assert_snapshot!(text.split("sidecar at").nth(1).expect("its rows"));
}

#[test]
fn both_clocks_of_a_usual_run_read_alike() {
    let page = page(&fixture::run(fixture::trials(&[Mode::None], &[1000.0], 3)));
    let section = section(&page, "corrected");
    assert!(words_of(section).contains("In every cell the two read alike"), "{}", words_of(section));
    assert!(!section.contains("<svg"));
    let closed = self::page(&fixture::run(fixture::closed_trials()));
    assert!(!has_section(&closed, "corrected"), "in a closed loop no request waits for its turn");
}

#[test]
fn each_second_of_a_trial_is_behind_a_click() {
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
    // The last second is half a one.
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
fn a_single_trial_has_no_interval() {
    let page = page(&fixture::run(fixture::trials(&[Mode::None, Mode::Sidecar], &[1000.0], 1)));
    assert!(page.contains("no interval"));
}

#[test]
fn forty_cells_are_all_there() {
    let page = page(&fixture::run(fixture::many_trials()));
    // Percentiles, added latency, CPU and memory for each load, trials for each load, what the proxies of four modes hold;
    // three figures against the rate, and the generator's lateness for each load.
    assert_eq!(page.matches("<svg class=\"chart\"").count(), 8 + 3 + 2 * 8 + 8 + 4 + 3 + 8);
}

#[test]
fn a_closed_loop_shows_what_gets_through() {
    let page = page(&fixture::run(fixture::closed_trials()));
    assert!(has_section(&page, "throughput"));
    for text in
        ["Requests/s", "Against none, %", "Throughput against none", "CPU of all proxies for each request"]
    {
        assert!(page.contains(text), "the page does not say {text:?}");
    }
    assert!(page.contains("<th scope=\"col\" class=\"n\">Mean</th>"));
    assert!(page.contains("all proxies"));
    assert!(!has_section(&self::page(&fixture::run(fixture::usual_trials())), "throughput"));
}

#[test]
fn what_the_modes_are_compared_with_is_named() {
    let modes = [Mode::EgressBypass, Mode::EgressSidecar];
    let page = page(&fixture::run(fixture::trials(&modes, &[1000.0], 3)));
    assert!(page.contains("Difference to mode <b>egress-bypass</b>"));
    assert!(page.contains("added to the p50 of egress-bypass"));
    assert!(!page.contains("mode <b>none</b>"));
}

#[test]
fn a_proxy_that_is_passed_twice_counts_each_passage() {
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
fn programs_of_the_users_own_are_named_with_their_digests() {
    let page = page(&fixture::run(fixture::usual_trials()));
    assert!(page.contains("not the installed ones: istiod 1.31-dev"));
    assert!(page.contains(&shown(
        "SHA-256 0123456789ab…; not the installed one: /home/me/istiod, named by an option"
    )));
}

#[test]
fn reasons_are_explained() {
    let page = page(&fixture::run(fixture::invalid_trials()));
    assert!(page.contains("<b>schedule-lag</b>: the generator sent too late by its own fault"));
    assert!(!page.contains("<b>saturated</b>"), "what does not occur is not explained");
}

#[test]
fn each_hop_says_what_it_spoke() {
    let mut trials = fixture::trials(&[Mode::AmbientWaypoint], &[1000.0], 2);
    let report = page(&fixture::run(trials.clone()));
    for part in ["What was spoken on each hop", "HTTP/1.1 inside HBONE", "unread bytes"] {
        assert!(report.contains(&shown(part)), "{part}");
    }
    // Older results do not say.
    trials.iter_mut().for_each(|trial| trial.path.hops.clear());
    assert!(!page(&fixture::run(trials)).contains("What was spoken on each hop"));
}

#[test]
fn spans_are_shown_where_something_was_traced() {
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
fn every_take_of_a_trial_is_shown_with_what_became_of_it() {
    let page = page(&fixture::run_of(fixture::retaken_trials(), 9));
    for text in [
        "8 of 9 trials valid",
        "2 taken again",
        "3 of 3, 1 taken again",
        "2 of 3, 1 taken again",
        "Taken again as trial 10, which is valid.",
        "Taken again as trial 11, which is not valid either.",
        "Trial 9 again.",
        "trial 10 (trial 2 again), gateway",
        "each at most 1 time, 3 in all",
        "2 were taken again, 1 of them in the estimates",
    ] {
        assert!(page.contains(&shown(text)), "the page does not say {text:?}");
    }
    assert!(!page.contains("cut short"), "{}", around(&page, "cut short"));
    let without = self::page(&fixture::run(fixture::usual_trials()));
    assert!(!without.contains("aken again"), "{}", around(&without, "aken again"));
}
