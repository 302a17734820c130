//! The same answer on the terminal, as Markdown, as a page and as JSON.

use super::command::{self, stderr, stdout};
use super::{changed, json, size};
use std::fs;
use std::path::Path;

/// Text as it is read: one space between words, no syntax of Markdown or HTML.
fn flat(text: &str) -> String {
    let entities =
        [("&#x27;", "'"), ("&#x2f;", "/"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    let text = text.replace('\u{a0}', " ").replace('\\', "").replace("<td", " <td");
    let text = entities.into_iter().fold(text, |text, (entity, character)| text.replace(entity, character));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn terminal_markdown_page_and_json_have_the_same_sentences_and_figures() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().expect("a plain name").to_owned();
    let (page, markdown) = (path("size.html"), path("size.md"));
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/size_gateway_run");
    let asked = [
        "--target",
        "50k",
        "--objective",
        "p99=20ms",
        "--headroom",
        "30%",
        "--cpu-hour=0.04",
        "--gb-hour=0.005",
    ];
    let asked = [&asked[..], &["--from", run.to_str().expect("a plain name")]].concat();
    let written = size(&[&asked[..], &["--output", &page, "--markdown", &markdown]].concat());
    assert!(written.status.success(), "{}", stderr(&written));
    let result = json(&size(&[&asked[..], &["--json"]].concat()));
    let markdown = fs::read_to_string(markdown).unwrap();
    let (terminal, page) = (flat(&stdout(&written)), flat(&fs::read_to_string(page).unwrap()));
    let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with("| gateway")).collect();
    let answer = &result.answers[0];
    assert_eq!(rows.len(), answer.options.len());
    for (row, option) in rows.iter().zip(&answer.options) {
        let cells: Vec<String> = row.trim_matches('|').split(" | ").map(flat).collect();
        let planned = option.planned;
        let count = match planned.upper_bound {
            true => format!("at most {}", planned.replicas),
            false => format!("{} (", planned.replicas),
        };
        assert!(cells[3].starts_with(&count), "{cells:?}");
        for cell in cells {
            // On the terminal, a cell may take several lines.
            let is_printed = cell.split(' ').all(|word| terminal.contains(word));
            assert!(is_printed && page.contains(&format!(">{cell}<")), "{cell}: {terminal}");
        }
    }
    let sentences = markdown.lines().filter_map(|line| {
        line.strip_prefix("- ").or(line.strip_prefix("**").and_then(|line| line.strip_suffix("**")))
    });
    let sentences: Vec<String> = sentences.map(flat).collect();
    assert!(sentences.len() > 8, "{markdown}");
    for sentence in &sentences {
        assert!(terminal.contains(sentence) && page.contains(sentence), "{sentence}: {terminal}");
    }
    let planned = &answer.recommendation().expect("a recommendation").planned;
    for text in [
        format!("Cheapest: {} replicas of gateway.cpu 1", planned.replicas),
        "no currency given".to_owned(),
        "Rests on 50 clients".to_owned(),
        "of the gateway alone".to_owned(),
        "envoy 1.40.0 (8aa137a7d009".to_owned(),
        "access log off".to_owned(),
        "with headroom 30 %".to_owned(),
    ] {
        assert!(terminal.contains(&text), "{text}: {terminal}");
    }
    for note in answer.notes.iter().chain(answer.options.iter().flat_map(|option| &option.notes)) {
        assert!(terminal.contains(&flat(&note.text)), "{}", note.text);
    }
}

/// Of a run whose rates end far below what a proxy carries, in part and whole.
#[test]
fn number_that_is_a_bound_says_so_in_all_outputs_and_its_advice_plans() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().expect("a plain name").to_owned();
    let (page, markdown) = (path("size.html"), path("size.md"));
    let run = changed(scratch.path(), "run", "", "");
    let asked = ["--target", "50k", "--from", &run];
    let written = size(&[&asked[..], &["--output", &page, "--markdown", &markdown]].concat());
    assert!(written.status.success(), "{}", stderr(&written));
    let result = json(&size(&[&asked[..], &["--json"]].concat()));
    assert!(result.notes.is_empty(), "{:?}", result.notes);
    let (page, markdown) = (fs::read_to_string(page).unwrap(), fs::read_to_string(markdown).unwrap());
    let texts = [flat(&stdout(&written)), flat(&markdown), flat(&page)];
    for answer in &result.answers {
        let option = answer.recommendation().expect("a recommendation");
        assert!(option.capacity.lower_bound && option.planned.upper_bound, "{option:?}");
        let command = option.next_run.as_deref().expect("a command");
        let count = option.planned.replicas;
        let firm = format!("Needed: {count} replicas");
        let headline =
            format!("Needed: at most {count} replicas (the runs did not reach what a replica carries: ");
        for text in &texts {
            assert!(text.contains(&headline) && !text.contains(&firm), "{headline}: {text}");
            assert!(text.matches(&format!("at most {count}")).count() >= 2, "the table too: {text}");
            assert!(text.contains(&flat(command)), "{command}: {text}");
        }
        let words: Vec<&str> = command.split(' ').map(|word| word.trim_matches('\'')).collect();
        let planned = command::run(&[&words[1..], &["--dry-run"]].concat());
        assert!(planned.status.success(), "{command}: {}", stderr(&planned));
    }
    assert!(page.contains("<h1 id=\"headline\">gateway: Needed: at most "), "{page}");
    let trials = Path::new(&run).join("trials.jsonl");
    let lines = fs::read_to_string(&trials).unwrap();
    fs::write(&trials, lines.lines().take(20).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let short = size(&[&asked[..], &["--markdown", &path("short.md")]].concat());
    for text in [stdout(&short), fs::read_to_string(path("short.md")).unwrap()] {
        let said = text.trim_start_matches('*');
        assert!(said.starts_with("Run cut short: "), "{text}");
        assert!(flat(said).contains(" of 30 planned trials"), "{text}");
    }
}

/// The lower end of the capacity is not enough for the target without a replica; the estimate is.
#[test]
fn capacity_without_one_is_enough_by_its_lower_end_or_by_the_estimate_alone() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/size_gateway_run");
    let asked = ["--objective", "p99=20ms", "--from", run.to_str().expect("a plain name")];
    let said = |more: &[&str]| flat(&stdout(&size(&[&asked[..], more].concat())));
    let without = said(&["--target", "50k"]);
    let by_estimate = "Without one, 7 carry 52600 requests/s: enough for the target by the estimate alone.";
    assert!(without.contains(by_estimate), "{without}");
    let with_headroom = said(&["--target", "50k", "--headroom", "30%"]);
    assert!(with_headroom.contains("with headroom 30 %: enough for the target."), "{with_headroom}");
}
