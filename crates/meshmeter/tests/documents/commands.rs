//! Finds the command lines that texts show.
//!
//! A command stands on a line of its own, after a colon at the end of a sentence, or in backticks. Only in backticks it may be
//! a mention that leaves arguments out, `meshmeter run`, or the program's name, `lab up`.

use crate::cli::Cli;
use crate::{markdown, rust_source, shell};
use clap::CommandFactory as _;
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

    fn mentions(code: &str) -> Vec<Self> {
        let calls = shell::calls(code).into_iter().chain(without_program(code));
        calls.map(|arguments| Self { arguments, is_mention: true }).collect()
    }
}

/// A subcommand with an option or a subcommand of its own.
fn without_program(code: &str) -> Option<String> {
    let (name, rest) = code.split_once(' ')?;
    let program = Cli::command();
    let subcommand = program.find_subcommand(name)?;
    let is_subcommand = subcommand.find_subcommand(rest.split(' ').next()?).is_some();
    (is_subcommand || rest.starts_with("--") || rest.contains(" --")).then(|| code.to_owned())
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
    let in_blocks = blocks.iter().flat_map(|block| of_text(&block.text));
    let mut shown: Vec<_> = in_blocks
        .chain(of_lines(&markdown::indented_code(&prose)))
        .chain(mentions.iter().flat_map(|code| Shown::mentions(code)))
        .collect();
    if stem == "studies" {
        shown.extend(options_by_heading(&prose));
    }
    shown
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
        .chain(mentions.iter().flat_map(|code| Shown::mentions(code)))
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
        let line = line.replace("\"$@\"", &kept);
        shown.extend(shell::calls(&line).into_iter().map(Shown::whole));
    }
    shown
}
