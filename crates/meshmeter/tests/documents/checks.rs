//! All commands and links of a tree, and a copy of the documents in which they are wrong on purpose.

use crate::check_commands::Checker;
use crate::tree::Tree;
use crate::{commands, links};
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn every_command_parses_and_every_run_plans() {
    let tree = Tree::repository();
    let mut checker = Checker::new();
    let mut problems = command_problems(&tree, tree.documents(), &mut checker);
    let (commands, runs) = checker.counts();
    assert!(commands >= 150 && runs >= 40, "documents show commands: {commands}, {runs} runs");
    problems.extend(command_problems(&tree, tree.other_files(), &mut checker));
    let (all_commands, all_runs) = checker.counts();
    assert!(
        all_commands >= commands + 150 && all_runs >= runs + 20,
        "so do others: {all_commands}, {all_runs} runs"
    );
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let (count, problems) = link_problems(&Tree::repository());
    assert!(count >= 300, "documents have links: {count}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The checks fail for what is wrong: a copy of the documents gets one error of each kind.
#[test]
fn wrong_commands_and_links_in_a_copy_of_the_documents_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let copy = copied(&Tree::repository(), folder.path());
    let append = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::write(&path, fs::read_to_string(&path).unwrap() + text).unwrap();
    };
    append(
        "README.md",
        "\n```sh\nmeshmeter run sidecar-cost --repeat 3    # an option\nmeshmeter compares runs/a runs/b\n```\n",
    );
    append(
        "docs/lab.md",
        "\nSee `meshmeter laboratory up`, [page](absent.md) and [heading](method.md#no-such-heading).\n",
    );
    append(
        "docs/studies.md",
        "\n## `mesh-modes`: more\n\nSmaller: `--scale nothing`.\n\n```\nsudo meshmeter run sidecar-costs\n```\n",
    );
    append(
        "docs/calibration.md",
        "\n```sh\nmeshmeter run mesh-modes --set load.rates=[1,2]\nmeshmeter size --from runs/a --target\n\
         meshmeter run nosuchfile.yaml\nmeshmeter lab up --mesh istio --mode gateway\nmeshmeter lab up --set proxy.mlts=off\n```\n",
    );
    append(
        "docs/size.md",
        "\n    meshmeter run indented-block\n\n~~~bash\nsudo -E meshmeter run tilde-block\n~~~\n\n```yaml\n\
         # meshmeter run yaml-comment\n```\n\n```text\nhint: meshmeter run text-block\n```\n\n\
         ``meshmeter run double-backticks`` and `load --without-name`, `lab upwards --mode`, `lab up --without-name`\n",
    );
    let changed = ["README.md", "lab.md", "studies.md", "calibration.md", "size.md"];
    let mut documents = copy.documents();
    documents.retain(|(path, _)| changed.iter().any(|name| path.ends_with(name)));
    let mut problems = command_problems(&copy, documents, &mut Checker::new());
    problems.extend(link_problems(&copy).1);
    problems.sort();
    insta::assert_snapshot!(without_reasons(&problems));
}

#[test]
fn wrong_commands_in_hints_comments_and_scripts_are_found() {
    let source = r#"
        /// `meshmeter lab instal` fetches it.
        fn hints() -> [String; 3] {
            [format!("remove it later: meshmeter cluster clean --runs {run}"), "`meshmeter compares A B` \
                compares them".to_owned(), "Examples:\n  meshmeter lab up --mode sidecars".to_owned()]
        }
    "#;
    let study = "# Smaller: --scale 1/10\n#   --set 'load.rates=[1,2]'   other rates\nname: sidecar-cost\n";
    let script =
        "fail \"it is missing: \\`meshmeter lab instals\\`\"\n#   sudo meshmeter doctor --calibrated\n";
    let page = "<pre>meshmeter run experiment.yaml --repeat 2</pre><code>meshmeter reports</code>";
    let files = [
        ("crates/x/src/hints.rs", source),
        ("studies/sidecar-cost.yaml", study),
        ("scripts/x.sh", script),
        ("crates/report/templates/x.html", page),
    ];
    let files = files.map(|(path, text)| (path.into(), text.to_owned())).to_vec();
    let problems = command_problems(&Tree::at("".into()), files, &mut Checker::new());
    insta::assert_snapshot!(without_reasons(&problems));
}

/// A line per problem. The reason that the program gives for a command is the subject of other tests.
fn without_reasons(problems: &[String]) -> String {
    let shorten = |problem: &String| problem.split(": error: ").next().unwrap_or_default().to_owned();
    problems.iter().map(shorten).collect::<Vec<_>>().join("\n")
}

/// Documents are copied; what they link to is linked.
fn copied(tree: &Tree, folder: &std::path::Path) -> Tree {
    for (path, text) in tree.documents() {
        let path = folder.join(path.strip_prefix(tree.root()).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    for part in [tree.root(), &tree.root().join("docs")] {
        for entry in fs::read_dir(part).unwrap().map(|entry| entry.unwrap().path()) {
            let link = folder.join(entry.strip_prefix(tree.root()).unwrap());
            if !link.exists() {
                symlink(entry, link).unwrap();
            }
        }
    }
    Tree::at(folder.canonicalize().unwrap())
}

fn command_problems(
    tree: &Tree,
    files: Vec<(std::path::PathBuf, String)>,
    checker: &mut Checker,
) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in files {
        checker.put_files(&text);
        for command in commands::of_file(&path, &text) {
            problems
                .extend(checker.check(&command).map(|problem| format!("{}: {problem}", tree.shown(&path))));
        }
    }
    problems
}

fn link_problems(tree: &Tree) -> (usize, Vec<String>) {
    let (mut count, mut problems) = (0, Vec::new());
    for (path, text) in tree.documents() {
        let (links, wrong) = links::check(&path, &text);
        count += links;
        problems.extend(wrong.into_iter().map(|problem| format!("{}: {problem}", tree.shown(&path))));
    }
    (count, problems)
}
