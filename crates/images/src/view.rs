//! An image's file tree as far as its layers are known, from the top down.

use std::collections::{HashMap, HashSet};

use crate::layer::{Entry, Kind};

const WHITEOUT: &str = ".wh.";
/// Prefix of union file systems' own marks. Of these, only the opaque directory matters to readers.
const WHITEOUT_OF_WHITEOUTS: &str = ".wh..wh.";
const OPAQUE: &str = ".wh..wh..opq";
const MAX_LINKS: usize = 40;

/// Entries of one layer. If several have the same path, the last one counts.
#[derive(Default)]
pub(crate) struct LayerEntries {
    kinds: HashMap<String, Kind>,
}

impl LayerEntries {
    pub(crate) fn insert(&mut self, entry: Entry) {
        self.kinds.insert(entry.path, entry.kind);
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.kinds.keys().map(String::as_str)
    }

    /// Path of the entry that has the content of `path`, after following hard links.
    fn source(&self, path: &str) -> Option<String> {
        let mut path = path;
        for _ in 0..MAX_LINKS {
            match self.kinds.get(path)? {
                Kind::File { .. } => return Some(path.to_owned()),
                Kind::HardLink(target) => path = target,
                _ => return None,
            }
        }
        None
    }
}

#[derive(Debug, Clone)]
enum Node {
    File { layer: usize, source: String },
    Directory,
    Symlink(String),
    Special(&'static str),
}

/// The result of resolving a wanted path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// The content of entry `source` of layer `layer`.
    File { layer: usize, source: String },
    /// Not in any layer known so far; lower layers may have it at `path`.
    Pending { path: String },
    /// Nothing, whatever the lower layers contain.
    Absent(String),
    /// Something that must not be followed or read.
    Hostile(String),
}

/// The tree of the upper layers, and what they hide in lower ones.
#[derive(Default)]
pub(crate) struct View {
    nodes: HashMap<String, Node>,
    whiteouts: HashSet<String>,
    opaque: HashSet<String>,
}

impl View {
    /// Adds the next lower layer.
    pub(crate) fn merge(&mut self, layer: usize, entries: &LayerEntries) {
        let mut nodes = Vec::new();
        for (path, kind) in &entries.kinds {
            if name_of(path).starts_with(WHITEOUT) || self.is_hidden(path) || self.nodes.contains_key(path) {
                continue;
            }
            let node = match kind {
                Kind::File { .. } => Node::File { layer, source: path.clone() },
                Kind::Directory => Node::Directory,
                Kind::Symlink(target) => Node::Symlink(target.clone()),
                Kind::HardLink(_) => match entries.source(path) {
                    Some(source) => Node::File { layer, source },
                    None => Node::Special("hard link to something that its layer does not have"),
                },
                Kind::Special(what) => Node::Special(what),
            };
            nodes.push((path.clone(), node));
        }
        // Whiteouts do not hide entries of their own layer.
        self.nodes.extend(nodes);
        for path in entries.paths() {
            let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
            if name == OPAQUE {
                self.opaque.insert(directory.to_owned());
            } else if name.starts_with(WHITEOUT_OF_WHITEOUTS) {
            } else if let Some(hidden) = name.strip_prefix(WHITEOUT) {
                self.whiteouts.insert(join(directory, hidden));
            }
        }
    }

    /// Resolves `path`. `is_complete` if there are no further layers.
    pub(crate) fn resolve(&self, path: &str, is_complete: bool) -> Resolution {
        let mut parts: Vec<String> = parts_of(path).map(str::to_owned).collect();
        for _ in 0..=MAX_LINKS {
            match self.walk(&parts, is_complete) {
                Walk::End(resolution) => return resolution,
                Walk::Link { at, target } => match follow(&parts, at, &target) {
                    Some(followed) => parts = followed,
                    None => {
                        let link = crate::error::one_line(&parts[..=at].join("/"), 200);
                        let target = crate::error::one_line(&target, 200);
                        return Resolution::Hostile(format!(
                            "its link /{link} leads out of the image, to {target}"
                        ));
                    }
                },
            }
        }
        Resolution::Hostile(format!("/{path} leads over more than {MAX_LINKS} links"))
    }

    fn walk(&self, parts: &[String], is_complete: bool) -> Walk {
        let mut path = String::new();
        for (at, part) in parts.iter().enumerate() {
            path = join(&path, part);
            let is_last = at + 1 == parts.len();
            match self.nodes.get(&path) {
                Some(Node::Symlink(target)) => return Walk::Link { at, target: target.clone() },
                Some(Node::File { layer, source }) if is_last => {
                    return Walk::End(Resolution::File { layer: *layer, source: source.clone() });
                }
                Some(Node::Special(what)) if is_last => {
                    return Walk::End(Resolution::Hostile(format!("/{path} is a {what}, not a file")));
                }
                Some(Node::File { .. } | Node::Special(_)) => {
                    return Walk::End(Resolution::Absent(format!("/{path} is not a directory")));
                }
                Some(Node::Directory) | None => {}
            }
        }
        let resolution = if matches!(self.nodes.get(&path), Some(Node::Directory)) || path.is_empty() {
            Resolution::Absent(format!("/{path} is a directory"))
        } else if self.is_hidden(&path) {
            Resolution::Absent(format!("/{path} was removed by one of its layers"))
        } else if is_complete {
            Resolution::Absent(format!("none of its layers has /{path}"))
        } else {
            Resolution::Pending { path }
        };
        Walk::End(resolution)
    }

    /// True if entries of lower layers at `path` are not part of the image.
    fn is_hidden(&self, path: &str) -> bool {
        if self.opaque.contains("") || self.whiteouts.contains(path) {
            return true;
        }
        path.match_indices('/').any(|(end, _)| {
            let ancestor = &path[..end];
            self.whiteouts.contains(ancestor)
                || self.opaque.contains(ancestor)
                || !matches!(self.nodes.get(ancestor), None | Some(Node::Directory))
        })
    }
}

enum Walk {
    End(Resolution),
    /// The part at index `at` is a symbolic link.
    Link {
        at: usize,
        target: String,
    },
}

/// The path with the link at index `at` replaced by its target; `None` if it leads out of the image.
fn follow(parts: &[String], at: usize, target: &str) -> Option<Vec<String>> {
    let mut followed = if target.starts_with('/') { Vec::new() } else { parts[..at].to_vec() };
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                followed.pop()?;
            }
            part => followed.push(part.to_owned()),
        }
    }
    followed.extend_from_slice(&parts[at + 1..]);
    Some(followed)
}

pub(crate) fn parts_of(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

#[cfg(test)]
mod tests;
