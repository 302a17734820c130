//! The book: its table of contents has each document once.

use crate::markdown;
use crate::tree::{Tree, files};
use std::collections::BTreeSet;
use std::path::PathBuf;

#[test]
fn book_has_every_document_once() {
    let tree = Tree::repository();
    let summary = tree.root().join("docs/SUMMARY.md");
    let listed: Vec<PathBuf> = markdown::links(&tree.read("docs/SUMMARY.md"))
        .iter()
        .map(|link| summary.parent().unwrap().join(link).canonicalize().expect(link))
        .collect();
    let chapters: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(chapters.len(), listed.len(), "a document is listed twice: {listed:?}");
    let is_chapter = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "md") && *path != summary;
    let documents: BTreeSet<_> = files(&tree.root().join("docs")).into_iter().filter(is_chapter).collect();
    let missing: Vec<_> = documents.difference(&chapters).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md lacks {missing:?}");
}

#[test]
fn book_begins_with_the_tutorial_and_ends_with_decisions() {
    let summary = Tree::repository().read("docs/SUMMARY.md");
    let parts: Vec<_> = summary.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    assert_eq!(
        parts,
        ["Meshmeter", "Tutorial", "How to", "Reference", "Method and decisions", "The project"]
    );
}
