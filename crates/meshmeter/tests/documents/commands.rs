//! Finds the command lines that texts show.
//!
//! A command stands on a line of its own, after a colon at the end of a sentence, or in backticks. Only in backticks it may be
//! a mention that leaves arguments out: `meshmeter run`.

use crate::markdown::{self, Block};
use crate::rust_source;
use std::path::Path;

/// A command line in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Arguments, as the text has them.
    pub arguments: String,
    /// True if required arguments may be missing.
    pub is_mention: bool,
}

impl Shown {
    fn whole(arguments: String) -> Self {
        Self { arguments, is_mention: false }
    }

    fn mention(code: &str) -> Option<Self> {
        let arguments = arguments(code)?;
        Some(Self { arguments, is_mention: true })
    }
}

/// Commands of a file, by its kind.
pub fn of_file(path: &Path, text: &str) -> Vec<Shown> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    match extension {
        "md" => of_document(stem, text),
        "rs" => of_source(text),
        "yaml" if path.components().any(|part| part.as_os_str() == "studies") => of_study(stem, text),
        "html" => of_text(&without_tags(text)),
        // Scripts quote backticks.
        _ => of_text(&text.replace("\\`", "`")),
    }
}

fn without_tags(page: &str) -> String {
    let code = ["<code>", "</code>"].iter().fold(page.to_owned(), |page, tag| page.replace(tag, "`"));
    ["<pre>", "</pre>"].iter().fold(code, |page, tag| page.replace(tag, "\n"))
}

fn of_document(stem: &str, document: &str) -> Vec<Shown> {
    let prose = markdown::prose(document);
    let mentions = markdown::inline_code(&prose);
    let blocks = markdown::blocks(document);
    let in_blocks = blocks.iter().filter(|block| is_shell(block)).flat_map(|block| of_lines(&block.text));
    let mut shown: Vec<_> =
        in_blocks.chain(mentions.iter().filter_map(|code| Shown::mention(code))).collect();
    if stem == "studies" {
        shown.extend(options_by_heading(&prose));
    }
    shown
}

fn is_shell(block: &Block) -> bool {
    ["sh", "console", ""].contains(&block.language)
}

/// Options in backticks under the heading of a study, such as `--scale 0.1`.
fn options_by_heading(prose: &str) -> Vec<Shown> {
    let sections = prose.split("\n## `").skip(1).filter_map(|section| section.split_once('`'));
    let options = |(study, section): (&str, &str)| -> Vec<Shown> {
        let is_options = |code: &String| code.starts_with("--") && code.contains(' ');
        let code = markdown::inline_code(section);
        code.iter().filter(|code| is_options(code)).map(|code| with_options(study, code)).collect()
    };
    sections.flat_map(options).collect()
}

fn with_options(study: &str, options: &str) -> Shown {
    Shown::whole(format!("run {study} {options}"))
}

fn of_source(source: &str) -> Vec<Shown> {
    let texts = rust_source::texts(source);
    let literals = texts.literals.iter().filter(|literal| literal.contains("meshmeter"));
    literals.flat_map(|literal| of_text(literal)).chain(of_text(&texts.comments)).collect()
}

/// A study's comments have commands, and options for the study itself.
fn of_study(study: &str, text: &str) -> Vec<Shown> {
    let comments: String = text
        .lines()
        .map(|line| {
            line.trim_start().strip_prefix('#').map_or("\n".to_owned(), |comment| format!("{comment}\n"))
        })
        .collect();
    let comments = comments.replace("\\\n", " ");
    let options = comments.lines().filter_map(|line| {
        let options = line.trim().strip_prefix("--").or_else(|| Some(line.split_once(": --")?.1))?;
        // Two spaces separate options from what they are for.
        let options = options.split("  ").next().unwrap_or_default().trim_end_matches('.');
        Some(with_options(study, &format!("--{options}")))
    });
    of_text(&comments).into_iter().chain(options).collect()
}

/// Commands in comments, messages and other plain text.
fn of_text(text: &str) -> Vec<Shown> {
    let without_signs: String =
        text.lines().map(|line| line.trim().trim_start_matches("# ").to_owned() + "\n").collect();
    let mentions = markdown::inline_code(&without_signs);
    of_lines(&without_signs)
        .into_iter()
        .chain(mentions.iter().filter_map(|code| Shown::mention(code)))
        .collect()
}

/// Commands on lines of their own and at the end of lines, after a colon. A backslash joins lines, and `set --` keeps arguments.
fn of_lines(text: &str) -> Vec<Shown> {
    let joined = text.replace("\\\n", " ");
    let mut kept = String::new();
    let mut shown = Vec::new();
    for line in joined.lines().map(str::trim) {
        if let Some(arguments) = line.strip_prefix("set -- ") {
            arguments.clone_into(&mut kept);
        }
        for part in shell_parts(line) {
            let part = part.replace("\"$@\"", &kept);
            let command = arguments(&part).or_else(|| arguments(part.rsplit_once(": ")?.1));
            shown.extend(command.map(Shown::whole));
        }
    }
    shown
}

/// Commands of a shell's line: without comments, redirections and backgrounds.
fn shell_parts(line: &str) -> Vec<&str> {
    let line = ["  #", " # ", " ("].iter().fold(line, |line, end| line.split(end).next().unwrap_or_default());
    line.split(" | ")
        .flat_map(|part| part.split(" && "))
        .filter_map(|part| part.split(" > ").next())
        .collect()
}

/// Arguments of `meshmeter`, if the text is such a command. What follows the name must look like a verb or an option.
fn arguments(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches("$ ");
    let text = text.strip_prefix("sudo ").unwrap_or(text);
    let text = text.strip_prefix("target/release/").unwrap_or(text);
    let arguments = text.strip_prefix("meshmeter ")?.trim_end();
    let first = arguments.split(' ').next()?;
    let is_verb = !first.is_empty()
        && first.chars().all(|character| character.is_ascii_lowercase() || character == '-');
    is_verb.then(|| arguments.to_owned())
}
