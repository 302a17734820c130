//! Pipelines for CI systems in the documents, as these systems read them: YAML, with scripts of a shell.

use crate::check_commands::Checker;
use crate::commands::Shown;
use crate::tree::Tree;
use crate::{markdown, shell};
use serde_json::Value;
use std::process::Command;

/// Scripts of a pipeline: `run` of GitHub's steps, `script` of GitLab's jobs.
fn scripts(pipeline: &Value, found: &mut Vec<String>) {
    match pipeline {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(script) if key == "run" => found.push(script.clone()),
                    Value::Array(lines) if key == "script" => {
                        found.extend(lines.iter().map(|line| line.as_str().expect("a line").to_owned()));
                    }
                    other => scripts(other, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| scripts(item, found)),
        _ => {}
    }
}

#[test]
fn pipelines_parse_and_their_comparisons_plan() {
    let document = Tree::repository().read("docs/compare.md");
    let pipelines: Vec<_> =
        markdown::blocks(&document).into_iter().filter(|block| block.language == "yml").collect();
    assert_eq!(pipelines.len(), 2, "one for GitHub, one for GitLab");
    let mut checker = Checker::new();
    for pipeline in pipelines {
        let parsed: Value = serde_saphyr::from_str(&pipeline.text)
            .unwrap_or_else(|error| panic!("{error}: {}", pipeline.text));
        let mut found = Vec::new();
        scripts(&parsed, &mut found);
        assert!(found.len() >= 3, "{found:?}");
        let mut comparisons = 0;
        for script in found {
            let checked = Command::new("bash").args(["-n", "-c", &script]).output().expect("bash starts");
            assert!(checked.status.success(), "{script}: {}", String::from_utf8_lossy(&checked.stderr));
            let joined = script.replace("\\\n", " ");
            for arguments in joined.lines().flat_map(shell::calls) {
                comparisons += usize::from(arguments.starts_with("compare "));
                let shown = Shown { arguments, is_mention: false };
                assert_eq!(checker.check(&shown), None);
            }
        }
        assert_eq!(comparisons, 1, "{}", pipeline.text);
    }
    assert!(checker.counts().1 > 0, "comparisons are planned");
}
