//! The report in a real browser, on phones and on a wide screen, in light and dark, and on paper: by the boxes of its elements
//! nothing is cut off, clipped or hidden without a hint, no labels overlap, and all text has contrast. Nothing is fetched.
//!
//! Needs Chromium (`chromium`, `chromium-browser` or `google-chrome` on the path, or the path in `CHROMIUM`),
//! and fails without it. Pages are shown in frames of a harness whose script inspects them: the reports
//! run no script. Only their media queries are changed, to those of the medium that a frame shows.

mod fixture;
#[path = "browser/viewed.rs"]
mod viewed;

use experiment::Protocol;
use experiment::settings::service::ServerSettings;
use experiment::topology::pair;
use report::RunData;
use report::graph::{self, CallFigures, Folding};
use report::html::{render, render_comparison, render_price, render_side_by_side, render_size, view};
use report::price::fill_price;
use report::profile::Profile;
use report::sentences::size::fill_size;
use report::side_by_side::SideBySide;
use report::svg::escape;
use report::watched::WatchedRun;
use results::{Figures, Prices, SizeQuestion};
use serde::Deserialize;
use statistics::size::price::{PriceQuestion, price};
use statistics::size::{MeasuredRun, size};
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Width in pixels and medium of a frame: phones, a wide screen, and the width between the margins of a page of A4.
const FRAMES: [(u32, Medium); 6] = [
    (360, Medium::Light),
    (420, Medium::Light),
    (1280, Medium::Light),
    (420, Medium::Dark),
    (1280, Medium::Dark),
    (695, Medium::Print),
];
/// Maximum height of what a report shows before its first folded section, in screens of 1280 × 800.
const MAX_SCREENS: f64 = 3.0;
/// Chromium takes about two seconds.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(180);

#[derive(Debug, Deserialize)]
struct Seen {
    name: String,
    charts: usize,
    texts: usize,
    /// Height before the first folded section, in screens.
    screens: f64,
    problems: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Medium {
    Light,
    Dark,
    Print,
}

impl Medium {
    /// The page with the style of the medium, whatever the browser prefers.
    fn of(self, page: &str) -> String {
        const DARK: &str = "@media screen and (prefers-color-scheme: dark)";
        assert!(page.contains("<body>"), "a page");
        match self {
            Self::Light => page.replace(DARK, "@media not all"),
            Self::Dark => page.replace(DARK, "@media screen"),
            Self::Print => page
                .replace(DARK, "@media not all")
                .replace("@media screen", "@media not all")
                .replace("@media print", "@media all"),
        }
    }
}

#[test]
fn reports_render_completely_on_phone_and_wide_screen() {
    let pages: Vec<(&str, String)> = [
        ("usual", fixture::usual_trials()),
        ("forty cells", fixture::many_trials()),
        ("five drivers", fixture::tenant_trials(5)),
        ("calls of five namespaces", fixture::tiered::tiered_trials(5)),
        ("a gateway at two limits", fixture::gateway_trials()),
        ("values of a factor", fixture::factor_trials(&[("proxy.access-log", &["off", "text", "json"])])),
        ("nothing valid", fixture::invalid_trials()),
        ("no trials", vec![]),
    ]
    .into_iter()
    .map(|(name, trials)| (name, render(&fixture::run(trials))))
    .chain([
        ("fleets", render(&fixture::fleets::fleet_run("proxies", &["100", "200", "400"]))),
        ("two factors", render(&fixture::designs::DESIGNS[0].run(1))),
        ("disturbed", render(&disturbed())),
        ("noise accepted", render(&disturbed().accepting_noise())),
    ])
    .collect();
    let (seen, errors) = look_at(&pages);
    assert_eq!(seen.len(), pages.len() * FRAMES.len());
    let problems: Vec<_> = seen.iter().filter(|page| !page.problems.is_empty()).collect();
    assert!(problems.is_empty(), "{problems:#?}");
    for page in &seen {
        assert!(page.charts * 3 <= page.texts, "{}: charts without words", page.name);
    }
    assert!(seen[0].charts >= 8, "{:?}", seen[0]);
    let of_demo =
        seen.iter().find(|page| page.name == "usual at 1280, Light").expect("the page of the demo's study");
    assert!(of_demo.screens > 0.5 && of_demo.screens <= MAX_SCREENS, "{} screens", of_demo.screens);
    assert_eq!(errors, Vec::<String>::new(), "errors on the console");
}

/// A topology of which every trial was disturbed.
fn disturbed() -> RunData {
    let mut trials = fixture::tiered::tiered_trials(1);
    for trial in &mut trials {
        let verdicts = trial.drivers.iter_mut().map(|driver| &mut driver.verdict);
        let all = verdicts.chain([&mut trial.verdict]);
        all.for_each(|verdict| verdict.spoil("other-processes: others took 1.70 cores", Figures::all()));
    }
    fixture::run(trials)
}

/// Pages of `meshmeter size` and `meshmeter price` on recorded runs.
fn answers() -> [(&'static str, String); 2] {
    let measured = |name: &str| {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../meshmeter/tests").join(name);
        let RunData { experiment, host, trials, .. } = RunData::read(&directory).expect("a recorded run");
        MeasuredRun { directory: name.to_owned(), experiment, host, trials }
    };
    let prices = Some(Prices { cpu_hour: 0.04, gb_hour: 0.005, ..Prices::default() });
    let question =
        SizeQuestion { target_rps: 5e4, headroom: 0.3, prices: prices.clone(), ..Default::default() };
    let mut size = size(&question, None, &[measured("size_gateway_run")]);
    fill_size(&mut size);
    let mut price = price(&PriceQuestion { prices, ..Default::default() }, &[measured("size_run")]);
    fill_price(&mut price);
    assert!(size.is_answered() && !price.modes.is_empty());
    [("size", render_size(&size)), ("price", render_price(&price))]
}

/// Stacks of a proxy with names as they come; a function got dearer, one is new, and one vanished.
fn profile(is_compared: bool) -> Profile {
    let stacks = [
        ("wrk:worker_0;[envoy]", [0.2, 0.2]),
        ("wrk:worker_0;main;Envoy::Network::ConnectionImpl::onReadReady(unsigned int)", [0.1, 0.15]),
        ("wrk:worker_0;main;std::__1::vector<std::pair<int, <b>&\">>::push_back", [0.0, 0.02]),
        ("wrk:worker_0;main;absl::Mutex::Lock", [0.03, 0.0]),
        ("wrk:worker_0;main;rare", [0.001, 0.0]),
    ];
    let stacks = stacks.into_iter().map(|(stack, cores)| (stack.to_owned(), cores)).collect();
    let (component, place) = ("server-proxy".to_owned(), "sidecar at 1000 requests/s".to_owned());
    Profile { component, place, is_compared, stacks }
}

#[test]
fn comparisons_and_answers_render_completely() {
    let run = fixture::run(fixture::usual_trials());
    let pages = [
        ("comparison", render_comparison(&fixture::comparisons::comparison(), &[])),
        ("profiled comparison", render_comparison(&fixture::comparisons::comparison(), &[profile(true)])),
        ("profiled", render(&RunData { profiles: vec![profile(false)], ..run.clone() })),
        ("killed comparison", render_comparison(&fixture::comparisons::killed_comparison(), &[])),
        ("side by side", render_side_by_side(&SideBySide::new([&run, &run], ["a", "b"].map(Path::new)))),
    ];
    let pages = [&pages[..], &answers()].concat();
    let (seen, errors) = look_at(&pages);
    assert_eq!(seen.len(), pages.len() * FRAMES.len());
    for page in &seen {
        assert!(page.problems.is_empty(), "{}: {:#?}", page.name, page.problems);
    }
    // One chart per cell, and one per figure.
    assert_eq!(seen[0].charts, 2 + 8, "{:?}", seen[0]);
    // A flame graph of the head, and one of what vanished, each in two widths.
    assert_eq!(seen[FRAMES.len()].charts, 2 + 8 + 2 * 2, "{:?}", seen[FRAMES.len()]);
    assert_eq!(errors, Vec::<String>::new(), "errors on the console");
}

#[test]
fn topologies_render_completely() {
    let topology = pair(3, 2, Protocol::Grpc, &ServerSettings::default(), false, None);
    let figures =
        CallFigures { lines: vec!["120/s".to_owned(), "p99 1.2 ms".to_owned()], ..CallFigures::default() };
    let figures = graph::Figures {
        calls: topology.calls.iter().map(|call| (*call, figures.clone())).collect(),
        ..graph::Figures::default()
    };
    let page = |folding| {
        format!(
            r#"<!doctype html><body><h1 id="headline">x</h1><div class="scroll" style="overflow-x:auto;background:linear-gradient(red,red) local">{}</div>"#,
            graph::draw_file(&topology, &folding, &figures)
        )
    };
    let folded = page(Folding::of_identical_namespaces(&topology));
    let (seen, errors) = look_at(&[("folded", folded), ("all", page(Folding::none(&topology)))]);
    assert_eq!(seen.len(), 2 * FRAMES.len());
    for page in &seen {
        assert!(page.problems.is_empty(), "{}: {:#?}", page.name, page.problems);
    }
    assert_eq!(errors, Vec::<String>::new(), "errors on the console");
}

#[test]
fn pages_of_the_view_render_completely_and_their_script_adds_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let mut progress = viewed::run_under_way(folder.path());
    let open = |name: &str| File::open(folder.path().join(name));
    let mut run = WatchedRun::default();
    run.refresh(&open);
    let now = "2026-11-20T10:00:30Z".parse().unwrap();
    let page =
        view::run("runs/a-name-that-is-as-long-as-names-of-runs-with-a-time-20261120-100000", &run, now);
    // A generator reports, a trial ends, and the run is killed.
    progress.second("generator-1", &viewed::second(4));
    progress.second("generator-2", &viewed::second(4));
    run.refresh(&open);
    let mut parts = view::now_parts(&run, now);
    drop(progress);
    run.refresh(&open);
    parts.extend(view::now_parts(&run, now));
    let row = view::rows(run.rows.iter().map(|(_, row)| row).take(1));
    let live = viewed::with_events(&page, &parts, &row);
    let damaged = tempfile::tempdir().unwrap();
    let mut broken = WatchedRun::default();
    broken.refresh(&|name| File::open(damaged.path().join(name)));
    let pages = [
        ("run", page.replace(viewed::SCRIPT_OF_RUN, "")),
        ("run after events", live),
        ("damaged run", view::run("damaged", &broken, now).replace(viewed::SCRIPT_OF_RUN, "")),
        ("list", viewed::list().replace("<script src=\"view.js\"></script>", "")),
        ("history", view::history("nightly.jsonl", "150 runs".to_owned(), &viewed::history())),
    ];
    let (seen, errors) = look_at(&pages);
    assert_eq!(seen.len(), pages.len() * FRAMES.len());
    for page in &seen {
        assert!(page.problems.is_empty(), "{}: {:#?}", page.name, page.problems);
    }
    // The trial under way and eight of its components, the last four trials, and a heat map of the last one.
    assert_eq!(
        (seen[0].charts, seen[FRAMES.len()].charts),
        (1 + 8 + 4 + 1, 4 + 1),
        "{:?}",
        seen[FRAMES.len()]
    );
    // The history's two figures.
    assert_eq!(seen.last().unwrap().charts, 2);
    assert_eq!(errors, Vec::<String>::new(), "errors on the console");
}

/// Verifies that the probe detects the problems that the tests above rule out.
#[test]
fn probe_detects_broken_page() {
    // One of our own ports, with no listener any more.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let page = format!(
        r#"<!doctype html><body><h1 id="headline" style="display:none">x</h1><p style="width:2000px">wide</p>
        <p style="width:40px;overflow:hidden;white-space:nowrap">much more than fits</p><p style="color:#ccc">pale</p>
        <div class="scroll" style="overflow-x:auto;width:90px"><table><tr><td style="white-space:nowrap">as wide as it is</table></div>
        <svg class="chart" viewBox="0 0 100 20" width="100"><text x="90" y="9">beyond the edge</text>
        <text x="1" y="9">one</text><text x="3" y="9">other</text></svg><img src="http://{address}/x.png">
        <script>console.error("seen")</script>"#
    );
    let (seen, errors) = look_at(&[("broken", page)]);
    for problem in [
        "wide in a window",
        "cut off: P wide",
        "headline",
        "outside its chart",
        "overlap: text one",
        "fetched",
        "clipped: P much",
        "contrast of P pale",
        "scrolls without a hint",
        "table scrolls",
    ] {
        let found = seen[0].problems.iter().any(|found| found.contains(problem));
        assert!(found, "the probe misses {problem:?}: {:#?}", seen[0].problems);
    }
    assert!(!errors.is_empty(), "the console's errors are not seen");
}

/// Results of the probe for each page at each width, and errors on the browser's console.
fn look_at(pages: &[(&str, String)]) -> (Vec<Seen>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let harness = folder.path().join("harness.html");
    std::fs::write(&harness, harness_page(pages)).unwrap();
    let (dom, log) = run_chromium(&harness, &folder.path().join("profile"));
    let result = dom
        .split_once("<pre id=\"result\">")
        .and_then(|(_, rest)| rest.split_once("</pre>"))
        .unwrap_or_else(|| panic!("no result of the probe; Chromium says:\n{log}"))
        .0;
    let result =
        result.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
    let seen = serde_json::from_str(&result).unwrap_or_else(|error| panic!("{error}: {result:?}\n{log}"));
    (seen, log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect())
}

fn harness_page(pages: &[(&str, String)]) -> String {
    let mut harness = String::from("<!doctype html><meta charset=\"utf-8\"><body>");
    for (name, page) in pages {
        for (width, medium) in FRAMES {
            // Line breaks matter within <pre> and the style sheet, so only markup is escaped.
            let page: Vec<String> = medium.of(page).lines().map(escape).collect();
            harness += &format!(
                "<iframe title=\"{} at {width}, {medium:?}\" style=\"width:{width}px;height:900px;border:0\" srcdoc=\"{}\"></iframe>",
                escape(name),
                page.join("\n")
            );
        }
    }
    harness + "<pre id=\"result\"></pre><script>" + include_str!("browser/probe.js") + "</script>"
}

/// The DOM after all scripts have run, and the browser's log.
fn run_chromium(page: &Path, profile: &Path) -> (String, String) {
    let mut browser = Command::new(chromium())
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"])
        .args(["--enable-logging=stderr", "--window-size=1400,1000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (dom, log) = (read_in_background(browser.stdout.take()), read_in_background(browser.stderr.take()));
    let texts =
        dom.recv_timeout(BROWSER_TIMEOUT).and_then(|dom| Ok((dom, log.recv_timeout(BROWSER_TIMEOUT)?)));
    end(&mut browser);
    texts.unwrap_or_else(|_| panic!("Chromium did not end within {BROWSER_TIMEOUT:?}"))
}

fn read_in_background(stream: Option<impl std::io::Read + Send + 'static>) -> mpsc::Receiver<String> {
    let mut stream = stream.unwrap();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

fn end(browser: &mut Child) {
    let _ = browser.kill();
    let _ = browser.wait();
}

fn chromium() -> PathBuf {
    if let Some(path) = std::env::var_os("CHROMIUM") {
        return path.into();
    }
    let folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| path.is_file())
        .expect("this test needs Chromium: install it (apt-get install chromium) or set CHROMIUM to its path")
}
