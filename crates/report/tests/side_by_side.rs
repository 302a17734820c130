//! Two runs side by side, as text, as a page and as JSON, and the page of a comparison, which is the same.

mod fixture;

use report::RunData;
use report::html;
use report::side_by_side::SideBySide;
use report::terminal::{Options, side_by_side_text};
use results::ComponentVersion;
use std::path::Path;

/// Folders of the runs.
const FOLDERS: [&str; 2] = ["runs/whole", "runs/part"];

/// The same trials, as if they had run on a cluster.
fn on_cluster(run: &RunData) -> RunData {
    let mut run = run.clone();
    run.host.privileges = "cluster".to_owned();
    run.host.cpu_model = "1 Kubernetes node".to_owned();
    run.host.cgroups = "kubelet".to_owned();
    let version = |name: &str, version: &str| ComponentVersion {
        name: name.into(),
        version: version.into(),
        ..Default::default()
    };
    run.host.versions.extend([version("kubernetes", "1.36.3"), version("kubelet", "1.36.3 <b>")]);
    run
}

#[test]
fn environments_are_named_and_differences_listed() {
    let lab = fixture::run(fixture::usual_trials());
    let compared = SideBySide::new([&lab, &on_cluster(&lab)], FOLDERS.map(Path::new));
    assert_eq!(compared.environments[1], "Kubernetes 1.36.3 (1 Kubernetes node)");
    let shown: Vec<_> = compared.rows.iter().filter_map(|row| row.ratio).collect();
    assert!(!shown.is_empty() && shown.iter().all(|ratio| (ratio - 1.0).abs() < 1e-9), "{shown:?}");
    let figures: Vec<&str> = compared.rows.iter().map(|row| row.figure.as_str()).collect();
    for figure in ["CPU of all proxies", "CPU of server-proxy", "anonymous memory of server-proxy"] {
        assert!(figures.contains(&figure), "{figures:?}");
    }
    assert!(!figures.iter().any(|figure| figure.ends_with(" of generator")), "{figures:?}");
    let named: Vec<&str> = compared.differences.iter().map(|difference| difference.what.as_str()).collect();
    assert_eq!(named, ["usage is read from", "kubernetes", "kubelet"]);
    assert!(compared.unmatched.is_empty());

    let text = side_by_side_text(&compared, Options { width: 120, colours: false });
    let page = html::render_side_by_side(&compared);
    let json = serde_json::to_value(&compared).unwrap();
    for word in ["kube-proxy", "CNI", "kubelet", "lab (AMD EPYC 9354P 32-Core Processor)", "added p50"] {
        assert!(text.contains(word) && page.contains(word), "{word}: {text}");
        assert!(json.to_string().contains(word));
    }
    assert!(page.contains("1.36.3 &lt;b&gt;") && !page.contains("<b>1.36.3"), "{page}");
}

#[test]
fn runs_of_one_kind_have_no_explanation_and_missing_cells_are_named() {
    let whole = fixture::run(fixture::usual_trials());
    let mut part = whole.clone();
    let left_out = part.summary.cells.pop().expect("cells");
    let compared = SideBySide::new([&whole, &part], FOLDERS.map(Path::new));
    assert!(compared.explanations.is_empty() && compared.differences.is_empty());
    assert_eq!(compared.unmatched.len(), 1);
    assert!(compared.unmatched[0].starts_with(&left_out.mode.to_string()), "{:?}", compared.unmatched);
    let machine = "lab (AMD EPYC 9354P 32-Core Processor)";
    assert_eq!(compared.environments, ["whole", "part"].map(|name| format!("{machine}, {name}")));
    assert!(compared.unmatched[0].ends_with(&format!("is missing in {machine}, part")));
    let compared = SideBySide::new([&whole, &part], ["a/run", "b/run"].map(Path::new));
    assert_eq!(compared.environments, ["a/run", "b/run"].map(|path| format!("{machine}, {path}")));
}

#[test]
fn page_of_a_comparison_opens_with_what_got_worse_and_shows_every_figure() {
    let comparison = fixture::comparisons::comparison();
    // The template engine escapes slashes too.
    let page = html::render_comparison(&comparison, &[]).replace("&#x2f;", "/");
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    let worse = "p50 of sidecar at 1000 requests/s: +6.0 % (2.7 to 9.3)";
    assert!(page.trim_start().starts_with("<!doctype html>"));
    assert!(place(worse) < place("<main>"), "{page}");
    assert!(place("at most 3 % of comparisons") < place("<main>"), "how sure that is");
    for column in
        ["Verdict", "Figure", "Cell", "Base", "Head", "Control", "Difference", "Change", "Margin", "Repeats"]
    {
        assert!(page.contains(&format!(">{column}</th>")), "{column}");
    }
    assert_eq!(page.matches("<tr><th scope=\"row\">").count(), comparison.figures.len());
    assert!(page.contains("look 12: +6.0 % (2.7 to 9.3), worse"), "looks over time");
    assert!(page.contains("look 1: +6.0 %, inconclusive"), "early looks have no interval");
    assert!(page.contains("envoy-1.35 &lt;b&gt;") && !page.contains("1.35 <b>"));

    let killed = html::render_comparison(&fixture::comparisons::killed_comparison(), &[]);
    assert!(killed.contains("nothing may be concluded") && killed.contains("the comparison has not ended"));
    assert!(!killed.contains("id=\"figures\"") && !killed.contains("id=\"looks\""));
}
