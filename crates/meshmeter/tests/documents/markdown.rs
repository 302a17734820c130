//! The parts of a Markdown document that the checks need: code blocks, inline code, links and anchors.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// A fenced block.
pub struct Block<'a> {
    /// Language after the opening fence; empty if there is none.
    pub language: &'a str,
    /// Text between the fences.
    pub text: String,
}

/// A fence: three or more backticks or tildes, and the text after them.
#[derive(Clone, Copy)]
struct Fence<'a> {
    sign: char,
    length: usize,
    information: &'a str,
}

impl<'a> Fence<'a> {
    fn of_line(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let sign = line.chars().next().filter(|sign| ['`', '~'].contains(sign))?;
        let information = line.trim_start_matches(sign);
        let length = line.len() - information.len();
        // A span of code may begin a line.
        let is_fence = length >= 3 && !(sign == '`' && information.contains('`'));
        is_fence.then_some(Self { sign, length, information })
    }

    fn closes(self, open: Self) -> bool {
        self.sign == open.sign && self.length >= open.length && self.information.is_empty()
    }
}

/// A line of a document.
enum Line<'a> {
    /// It opens a block of this language.
    Opening(&'a str),
    InBlock(&'a str),
    Closing,
    Prose(&'a str),
}

fn lines(document: &str) -> impl Iterator<Item = Line<'_>> {
    let mut open: Option<Fence> = None;
    document.lines().map(move |line| match (Fence::of_line(line), open) {
        (Some(fence), Some(opening)) if fence.closes(opening) => {
            open = None;
            Line::Closing
        }
        (_, Some(_)) => Line::InBlock(line),
        (Some(fence), None) => {
            open = Some(fence);
            Line::Opening(fence.information.split([' ', ',']).next().unwrap_or_default())
        }
        (None, None) => Line::Prose(line),
    })
}

/// Fenced blocks, in order.
pub fn blocks(document: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block> = Vec::new();
    for line in lines(document) {
        match (line, blocks.last_mut()) {
            (Line::Opening(language), _) => blocks.push(Block { language, text: String::new() }),
            (Line::InBlock(line), Some(block)) => block.text += &format!("{line}\n"),
            _ => {}
        }
    }
    blocks
}

/// Lines of code that are set off by indentation alone. A list's paragraphs are indented as well; both are here.
pub fn indented_code(prose: &str) -> String {
    let is_indented = |line: &&str| line.starts_with("    ") || line.starts_with('\t');
    prose.lines().filter(is_indented).map(|line| format!("{line}\n")).collect()
}

/// Writes the experiments and topologies of a document into a folder, each under its own name. Returns the files' names.
pub fn named_files(document: &str, folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for block in blocks(document).iter().filter(|block| block.language == "yaml") {
        let name = block.text.lines().find_map(|line| line.strip_prefix("name: "));
        let file = format!("{}.yaml", name.unwrap_or("without-name"));
        fs::write(folder.join(&file), &block.text).unwrap();
        names.push(file);
    }
    names
}

/// Text outside fenced blocks; a block leaves one empty line.
pub fn prose(document: &str) -> String {
    let mut prose = String::new();
    for line in lines(document) {
        match line {
            Line::Prose(line) => prose += &format!("{line}\n"),
            Line::Opening(_) => prose.push('\n'),
            Line::InBlock(_) | Line::Closing => {}
        }
    }
    prose
}

/// Code in backticks, a span over several lines in one line. A paragraph, a list's item and a table's row each begin anew, so
/// that a single backtick spoils one of them only.
pub fn inline_code(prose: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in prose.lines() {
        let line = line.trim();
        if line.is_empty() || ["- ", "* ", "|", "#"].iter().any(|start| line.starts_with(start)) {
            paragraphs.push(String::new());
        }
        let paragraph = paragraphs.last_mut().expect("there is one");
        *paragraph += &format!(" {line}");
    }
    paragraphs.iter().flat_map(|paragraph| code_and_text(paragraph).0).collect()
}

/// Spans of code of a paragraph, and its other text. As many backticks as open a span close it.
fn code_and_text(paragraph: &str) -> (Vec<String>, String) {
    let (mut code, mut text) = (Vec::new(), String::new());
    let mut rest = paragraph;
    while let Some(start) = rest.find('`') {
        text += &rest[..start];
        rest = &rest[start..];
        let ticks = &rest[..rest.len() - rest.trim_start_matches('`').len()];
        let after = &rest[ticks.len()..];
        if let Some(end) = closing(after, ticks) {
            code.push(after[..end].trim().to_owned());
            rest = &after[end + ticks.len()..];
        } else {
            rest = after;
        }
    }
    (code, text + rest)
}

/// Place of the next run of exactly these backticks.
fn closing(text: &str, ticks: &str) -> Option<usize> {
    let places = text.match_indices(ticks).map(|(place, _)| place);
    places
        .into_iter()
        .find(|&place| !text[..place].ends_with('`') && !text[place + ticks.len()..].starts_with('`'))
}

/// Targets of links and images.
pub fn links(document: &str) -> Vec<String> {
    let prose = prose(document);
    let without_code: String =
        prose.split("\n\n").map(|paragraph| code_and_text(paragraph).1 + "\n\n").collect();
    let target = |rest: &str| rest.split([')', ' ']).next().unwrap_or_default().to_owned();
    without_code.split("](").skip(1).map(target).collect()
}

/// Anchors of a document's headings, by the rule that GitHub and mdBook have in common.
pub fn anchors(document: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    for line in prose(document).lines() {
        let Some(title) = line.strip_prefix('#').map(|line| line.trim_start_matches('#')) else { continue };
        let anchor = anchor(title);
        let repeated = (1..).map(|n| format!("{anchor}-{n}")).find(|anchor| !anchors.contains(anchor));
        let is_new = anchors.insert(anchor);
        anchors.extend(repeated.filter(|_| !is_new));
    }
    anchors
}

/// Anchor of a heading: lower case, without punctuation, with hyphens for spaces. Of a link only its text counts.
fn anchor(title: &str) -> String {
    let mut text = String::new();
    let mut rest = title.trim();
    while let Some((before, after)) = rest.split_once("](") {
        text += before;
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text += rest;
    text.chars()
        .filter(|character| character.is_alphanumeric() || [' ', '-', '_'].contains(character))
        .map(|character| if character == ' ' { '-' } else { character.to_ascii_lowercase() })
        .collect()
}
