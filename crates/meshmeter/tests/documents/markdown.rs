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

/// Fenced blocks, in order.
pub fn blocks(document: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in document.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some(Block { language, text: String::new() }),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    blocks
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
    let (mut prose, mut is_block) = (String::new(), false);
    for line in document.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
            prose.push('\n');
        } else if !is_block {
            prose += &format!("{line}\n");
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
    let in_paragraph = |paragraph: &String| -> Vec<String> {
        // The last piece is text, or follows a backtick that nothing closes.
        let pieces: Vec<_> = paragraph.split('`').map(|piece| piece.trim().to_owned()).collect();
        let closed = pieces.len().saturating_sub(1);
        pieces.into_iter().take(closed).skip(1).step_by(2).collect()
    };
    paragraphs.iter().flat_map(in_paragraph).collect()
}

/// Targets of links and images.
pub fn links(document: &str) -> Vec<String> {
    let prose = prose(document);
    let without_code: String = prose
        .split("\n\n")
        .map(|paragraph| paragraph.split('`').step_by(2).collect::<String>() + "\n\n")
        .collect();
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
