//! Sentences, programs, and comparison with published figures.

use results::{ComponentVersion, PublishedFigure};

/// Units that may follow a number in a sentence.
const UNITS: [&str; 13] =
    ["µs", "ms", "s", "%", "core", "cores", "B", "kB", "MB", "GB", "KiB", "vCPU", "requests/s"];

/// A sentence with no-break spaces between each number and its unit.
#[must_use]
pub fn unbroken(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(space) = rest.find(' ') {
        let (before, after) = (&rest[..space], &rest[space + 1..]);
        let unit = after.split([' ', '.', ',', ';', ')']).next().unwrap_or_default();
        let kept = before.ends_with(|last: char| last.is_ascii_digit()) && UNITS.contains(&unit);
        result.push_str(before);
        result.push(if kept { '\u{a0}' } else { ' ' });
        rest = after;
    }
    result + rest
}

/// A program chosen by the user: `envoy 1.40.0, named by an option (/home/me/envoy, SHA-256 0123456789ab…)`.
#[must_use]
pub fn named_program(version: &ComponentVersion) -> String {
    let by = match version.named_by.as_deref() {
        Some("option") => ", named by an option",
        Some("variable") => ", named by a variable of the environment",
        Some("search-path") => ", found in PATH",
        _ => "",
    };
    let digest = version.sha256.as_deref().map(|digest| format!("SHA-256 {}", shortened_digest(digest)));
    let details: Vec<String> = version.path.clone().into_iter().chain(digest).collect();
    let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    let text = self::version(&version.version, version.sha256.is_some());
    format!("{} {text}{by}{details}", version.name)
}

/// Whether a run agrees with a published figure, as text; `None` if it has no interval of a single figure.
#[must_use]
pub fn agreement(figure: &PublishedFigure) -> Option<&'static str> {
    let has_interval = figure.measured_estimate.is_some_and(|measured| measured.low.is_some());
    match figure.agrees {
        Some(true) => Some("agrees"),
        Some(false) => Some("differs"),
        None if has_interval => Some("too uncertain to tell"),
        None => None,
    }
}

/// A name of at most this many characters, with `…` in its middle if it is longer. The ends of a call, `from → to`, are cut each.
pub(crate) fn cut(name: &str, room: usize) -> String {
    if let Some((from, to)) = name.split_once(" → ") {
        return format!("{} → {}", cut(from, room), cut(to, room));
    }
    let all = name.chars().count();
    if all <= room {
        return name.to_owned();
    }
    let kept = room.saturating_sub(1);
    let head = kept.div_ceil(2);
    name.chars().take(head).chain(['…']).chain(name.chars().skip(all - (kept - head))).collect()
}

/// A version as its program reports it, with one hash at most: `1.31-dev-eed52ebb66ad` for
/// `1.31-dev-eed52ebb66ad-eed52ebb66ad-Clean`, and `1.40.0 (d79f6e8d453e…)` for Envoy's with its commit and kind of build. The
/// commit is left out where a digest is beside the version.
#[must_use]
pub fn version(reported: &str, has_digest: bool) -> String {
    if let Some((number, build)) = reported.split_once(" (") {
        let commit = build.split(['/', ')']).next().unwrap_or_default();
        return if has_digest {
            number.to_owned()
        } else {
            format!("{number} ({})", shortened_digest(commit))
        };
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in reported.split('-').filter(|part| *part != "Clean") {
        if parts.last() != Some(&part) {
            parts.push(part);
        }
    }
    parts.join("-")
}

/// The first digits of a digest, enough to distinguish builds. The full digest is in `host.json`.
#[must_use]
pub fn shortened_digest(sha256: &str) -> String {
    const SHOWN: usize = 12;
    match sha256.get(..SHOWN) {
        Some(start) if sha256.len() > SHOWN => format!("{start}…"),
        _ => sha256.to_owned(),
    }
}
