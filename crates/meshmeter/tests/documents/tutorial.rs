//! The outputs that the tutorial shows are those of its commands.

use crate::markdown;
use crate::tree::Tree;
use std::process::Command;

/// A command that is followed by its output, which `…` lines shorten.
struct Shown<'a> {
    arguments: Vec<&'a str>,
    output: &'a str,
}

fn shown(document: &str) -> Vec<Shown<'_>> {
    let follows = document.split("\n```sh\nmeshmeter ").skip(1).filter_map(|rest| {
        let (command, rest) = rest.split_once("\n```\n")?;
        let (output, _) = rest.strip_prefix("\n```text\n")?.split_once("```")?;
        Some(Shown { arguments: command.split(' ').collect(), output })
    });
    follows.collect()
}

#[test]
fn outputs_of_the_tutorial_are_those_of_its_commands() {
    let tree = Tree::repository();
    let mut outputs = 0;
    for page in ["first-answer", "own-services"] {
        let document = tree.read(&format!("docs/tutorial/{page}.md"));
        let folder = tempfile::tempdir().unwrap();
        markdown::named_files(&document, folder.path());
        for Shown { arguments, output } in shown(&document) {
            let run = Command::new(env!("CARGO_BIN_EXE_meshmeter"))
                .args(&arguments)
                .current_dir(folder.path())
                .output()
                .expect("meshmeter starts");
            let printed = String::from_utf8_lossy(&run.stdout);
            let mut rest = &*printed;
            for part in output.split("…\n") {
                let found =
                    rest.split_once(part).unwrap_or_else(|| panic!("{page}: {arguments:?} prints {printed}"));
                rest = found.1;
            }
            outputs += 1;
        }
    }
    assert_eq!(outputs, 2, "a plan and a check of a topology are shown");
}

/// The whole output has a test of its own, with the run that it is from.
#[test]
fn answer_of_the_gateway_page_is_that_of_the_sizing_page() {
    let tree = Tree::repository();
    let [page, whole] = ["docs/tutorial/own-gateway.md", "docs/size.md"].map(|path| tree.read(path));
    let blocks = markdown::blocks(&page);
    for language in ["text", "yaml"] {
        let block = blocks.iter().find(|block| block.language == language).expect(language);
        assert!(whole.contains(&block.text), "docs/size.md does not have {}", block.text);
    }
}
