//! Reports with hundreds of components stay small.

mod fixture;

use fixture::tiered::Tiered;
use report::html::render;
use report::terminal::{Options, render as render_terminal};
use results::Mode;
use std::time::Instant;

/// Maximum page size that opens well on a phone.
const MAX_PAGE_BYTES: usize = 2_500_000;

#[test]
fn report_of_fifty_namespaces_stays_small() {
    let modes = vec![Mode::None, Mode::Sidecar, Mode::Ambient, Mode::AmbientWaypoint];
    let trials = Tiered { namespaces: 50, modes, repeats: 2, many_edges: true }.trials();
    let proxies =
        trials.iter().find(|trial| trial.mode == Mode::Sidecar).expect("a trial").path.proxies.len();
    assert_eq!((proxies, trials[0].services.len(), trials[0].edges.len()), (250, 200, 450));
    let started = Instant::now();
    let run = fixture::run(trials);
    let summarized = Instant::now();
    let page = render(&run);
    println!(
        "{} bytes; statistics {:?}, page {:?}",
        page.len(),
        summarized.duration_since(started),
        summarized.elapsed()
    );
    assert!(page.len() < MAX_PAGE_BYTES, "{} bytes", page.len());
    for text in ["All 450 edges", "All 200 services", "All 50 drivers", "a-proxy ×50", "a → b2"] {
        assert!(page.contains(&report::svg::escape(text)), "the page does not say {text:?}");
    }
    for (index, finding) in run.summary.findings.iter().enumerate() {
        let length = finding.text.chars().count() + finding.detail.chars().count();
        assert!(length < 1200, "finding {index} is long: {}", finding.text);
    }
    let terminal = render_terminal(&run.summary, Options { width: 120, colours: false });
    assert!(terminal.lines().count() < 260, "{}", terminal.lines().count());
    assert!(terminal.contains("--csv FILE") && terminal.contains("--edges-csv FILE"), "{terminal}");
}
