//! Runs, comparisons and histories below a directory.

use super::folder::Folder;
use jiff::Timestamp;
use report::folder::{
    COMPARISON_FILE, EXPERIMENT_FILE, HEAD_FILE, HOST_FILE, PROGRESS_FILE, SUMMARY_FILE, TRIALS_FILE,
    is_written,
};
use report::history_file::{HistoryFile, SCHEMA_OF_ALL_VERSIONS};
use report::html::view::{Listed, Part, list_part};
use report::watched::UnderWay;
use results::percent_encode;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Folders within folders that are looked into.
const MAX_DEPTH: usize = 4;
/// Maximum number of names that are looked at, and of entries that are shown.
const MAX_NAMES: usize = 100_000;
const MAX_LISTED: usize = 1000;
/// Beginning of a file that shows whether it is a history, even if its first line is damaged.
const HISTORY_HEAD_BYTES: u64 = 16 << 10;
/// Larger results of comparisons are listed without their verdict.
const MAX_COMPARISON_BYTES: u64 = 16 << 20;

/// Something that is listed.
struct Found {
    /// Path below the directory.
    path: String,
    is_history: bool,
    changed: SystemTime,
}

/// States of histories by path. Reading one takes long, and few change between two looks.
#[derive(Debug, Default)]
pub(super) struct HistoryStates(Mutex<HashMap<String, HistoryState>>);

#[derive(Clone, Debug)]
struct HistoryState {
    changed: SystemTime,
    length: u64,
    state: (String, bool),
}

impl HistoryStates {
    /// State of a history; true if something is wrong with it.
    fn of(&self, root: &Folder, path: &str) -> io::Result<(String, bool)> {
        let file = root.file(path)?;
        let metadata = file.metadata()?;
        let (changed, length) = (metadata.modified()?, metadata.len());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) =
            known.get(path).filter(|known| (known.changed, known.length) == (changed, length))
        {
            return Ok(known.state.clone());
        }
        let (history, end) = HistoryFile::readable(file, Path::new(path));
        let state = report::history::state(&history, &end);
        known.insert(path.to_owned(), HistoryState { changed, length, state: state.clone() });
        Ok(state)
    }

    /// Forgets histories that are not listed any more.
    fn retain(&self, found: &[Found]) {
        let listed: HashSet<&str> = found.iter().map(|found| found.path.as_str()).collect();
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|path, _| listed.contains(path.as_str()));
    }
}

/// The list of a directory.
pub(super) fn list(root: &Folder, histories: &HistoryStates) -> Part {
    let mut found = find(root);
    found.sort_by(|one, other| (other.changed, &one.path).cmp(&(one.changed, &other.path)));
    let left_out = found.len().saturating_sub(MAX_LISTED);
    found.truncate(MAX_LISTED);
    histories.retain(&found);
    list_part(&found.iter().map(|found| listed(root, histories, found)).collect::<Vec<_>>(), left_out)
}

fn find(root: &Folder) -> Vec<Found> {
    let mut found = Vec::new();
    let mut due = vec![(String::new(), 0)];
    let mut names = 0;
    while let Some((path, depth)) = due.pop() {
        // A folder that vanishes meanwhile, or that may not be read, has nothing to show.
        let Ok(folder) = root.folder(&path) else { continue };
        if folder.is_run() {
            let changed = changed(&folder, TRIALS_FILE).or_else(|_| changed(&folder, EXPERIMENT_FILE));
            found.push(Found { path, is_history: false, changed: changed.unwrap_or(SystemTime::UNIX_EPOCH) });
            continue;
        }
        for (name, is_folder) in folder.names().unwrap_or_default() {
            names += 1;
            let below = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            if names > MAX_NAMES {
                return found;
            } else if is_folder && depth < MAX_DEPTH {
                due.push((below, depth + 1));
            } else if name.ends_with(".jsonl") && folder.file(&name).is_ok_and(is_history) {
                let changed = changed(&folder, &name).unwrap_or(SystemTime::UNIX_EPOCH);
                found.push(Found { path: below, is_history: true, changed });
            }
        }
    }
    found
}

fn changed(folder: &Folder, name: &str) -> io::Result<SystemTime> {
    folder.file(name)?.metadata()?.modified()
}

/// True if a file has a line of a history, of any version, near its beginning.
pub(super) fn is_history(file: File) -> bool {
    let mut head = Vec::new();
    let read = file.take(HISTORY_HEAD_BYTES).read_to_end(&mut head);
    read.is_ok() && String::from_utf8_lossy(&head).contains(&format!("\"{SCHEMA_OF_ALL_VERSIONS}"))
}

fn listed(root: &Folder, histories: &HistoryStates, Found { path, is_history, changed }: &Found) -> Listed {
    let address = percent_encode(path);
    let folder = root.folder(path);
    let has = |name: &str| folder.as_ref().is_ok_and(|folder| folder.file(name).is_ok());
    let (state, flagged) = match &folder {
        _ if *is_history => histories.of(root, path).unwrap_or_else(|error| (error.to_string(), true)),
        Ok(folder) => state(folder),
        Err(error) => (error.to_string(), true),
    };
    Listed {
        // A name such as `..` is none of its own for browsers; a minus makes it one.
        href: if *is_history { format!("history/-{address}") } else { format!("run/-{address}/") },
        name: if path.is_empty() { "this folder".to_owned() } else { path.clone() },
        kind: match is_history {
            true => "history",
            false if has(COMPARISON_FILE) || has(HEAD_FILE) => "comparison",
            false => "run",
        },
        state,
        flagged,
        changed: Timestamp::try_from(*changed)
            .map_or_else(|_| String::new(), |time| report::format::moment(&time.to_string())),
    }
}

/// Progress of a run or comparison; true if something is wrong with it.
fn state(folder: &Folder) -> (String, bool) {
    if let Ok(mut file) = folder.file(PROGRESS_FILE)
        && is_written(&file)
        && let Ok(UnderWay { trial, .. }) = UnderWay::begin(&mut file)
    {
        return (format!("in progress: trial {} of {}", trial.ended.saturating_add(1), trial.trials), false);
    }
    if let Ok(verdict) = verdict(folder) {
        let is_bad = ["worse", "failed"].contains(&verdict.as_str());
        return (verdict.replace('-', " "), is_bad);
    }
    let lacks: Vec<&str> =
        [EXPERIMENT_FILE, HOST_FILE].into_iter().filter(|name| folder.file(name).is_err()).collect();
    match lacks.as_slice() {
        [] if folder.file(SUMMARY_FILE).is_ok() => ("ended".to_owned(), false),
        [] => ("no summary: cut short, or not begun".to_owned(), true),
        lacks => (format!("damaged: no {}", lacks.join(", no ")), true),
    }
}

/// Verdict of a comparison.
fn verdict(folder: &Folder) -> io::Result<String> {
    #[derive(Deserialize)]
    struct Judged {
        verdict: String,
    }
    let mut text = Vec::new();
    folder.file(COMPARISON_FILE)?.take(MAX_COMPARISON_BYTES).read_to_end(&mut text)?;
    Ok(serde_json::from_slice::<Judged>(&text)?.verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The list, with slashes as they are.
    fn html_of(root: &Path) -> String {
        list(&Folder::open(root).unwrap(), &HistoryStates::default()).html.replace("&#x2f;", "/")
    }

    #[test]
    fn runs_comparisons_and_histories_are_found_with_their_state() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("a/ended/experiment.yaml", ""),
            ("a/ended/host.json", ""),
            ("a/ended/summary.json", ""),
            ("a/ended/logs/trials.jsonl", "not looked into"),
            ("<b>&/trials.jsonl", ""),
            ("compared/comparison.json", "{\"verdict\": \"equivalent\", \"more\": 1}"),
            ("histories/nightly.jsonl", "{\"schema\":\"meshmeter.history/1\",\"run\":\"x\"}\n"),
            ("histories/other.jsonl", "{}"),
            ("1/2/3/4/5/trials.jsonl", "too deep"),
            (".hidden/trials.jsonl", ""),
        ] {
            write(root.path(), path, text);
        }
        let html = html_of(root.path());
        for expected in [
            "<a href=\"run/-a%2Fended/\">a/ended</a></th><td data-label=\"Kind\">run</td>",
            "\"State\">ended<",
            "<a href=\"run/-%3Cb%3E%26/\">&lt;b&gt;&amp;</a>",
            "flag\" data-label=\"State\">damaged: no experiment.yaml, no host.json<",
            "<td data-label=\"Kind\">comparison</td>",
            "\"State\">equivalent<",
            "<a href=\"history/-histories%2Fnightly.jsonl\">",
            "flag\" data-label=\"State\">0 runs; line 1 cannot be read and is left out<",
        ] {
            assert!(html.contains(expected), "{expected} is missing in {html}");
        }
        assert_eq!(html.matches("<a ").count(), 4, "{html}");
        let empty = tempfile::tempdir().unwrap();
        assert!(html_of(empty.path()).contains("no runs"), "an empty folder");
    }

    #[test]
    fn of_many_runs_the_last_changed_are_listed() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..MAX_LISTED + 3 {
            write(root.path(), &format!("{number}/trials.jsonl"), "");
        }
        let old = File::options().append(true).open(root.path().join("7/trials.jsonl")).unwrap();
        old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let html = html_of(root.path());
        assert_eq!(html.matches("<a ").count(), MAX_LISTED);
        assert!(
            html.contains("; 3 further ones are not shown") && !html.contains("run/-7/"),
            "the oldest is not"
        );
    }
}
