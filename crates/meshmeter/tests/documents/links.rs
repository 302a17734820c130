//! Links between documents and to files: the file exists, and so does the heading that an anchor names.

use crate::markdown;
use std::fs;
use std::path::Path;

/// Number of links within the repository, and what is wrong with them.
pub fn check(path: &Path, document: &str) -> (usize, Vec<String>) {
    let links = markdown::links(document);
    let inner: Vec<_> = links.iter().filter(|link| !is_outside(link)).collect();
    (inner.len(), inner.into_iter().filter_map(|link| problem(path, document, link)).collect())
}

fn is_outside(link: &str) -> bool {
    link.contains("://") || link.starts_with("mailto:")
}

fn problem(path: &Path, document: &str, link: &str) -> Option<String> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = path.parent().expect("a document lies in a folder").join(file);
    let text = if file.is_empty() {
        document.to_owned()
    } else if target.is_dir() {
        return Some(format!("link to a folder, which is not a page of the book: {link}"));
    } else if let Ok(text) = fs::read(&target) {
        String::from_utf8_lossy(&text).into_owned()
    } else {
        return Some(format!("link to a file that does not exist: {link}"));
    };
    let is_found = anchor.is_empty() || markdown::anchors(&text).contains(anchor);
    (!is_found).then(|| format!("link to a heading that does not exist: {link}"))
}
