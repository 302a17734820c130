//! Invariants of any experiment file. Included by the fuzz target and by the test that replays the corpus.
//!
//! An input is the file and, behind a zero byte, the text of any file that it names.

use experiment::{Experiment, Files, Plan};
use std::path::PathBuf;

/// Limit on the text of an error, bytes.
const MAX_SHOWN: usize = 10_000;
/// Larger plans are not compared.
const MAX_TRIALS: usize = 100;

/// Every file has the same text.
struct OneText<'a>(&'a str);

impl Files for OneText<'_> {
    fn text(&self, _path: &str) -> Result<String, String> {
        Ok(self.0.to_owned())
    }

    fn locate(&self, path: &str) -> Result<PathBuf, String> {
        Ok(path.into())
    }
}

pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (file, other) = text.split_once('\0').unwrap_or((text, ""));
    match Experiment::parse_with(file, "file", &[], &OneText(other)) {
        Ok(experiment) => check_written(&experiment),
        Err(error) => {
            let shown = error.render(true);
            assert!(!shown.is_empty() && shown.len() < MAX_SHOWN, "{} bytes", shown.len());
        }
    }
}

/// Invariant of the file that a run writes: without any other file it is read as the same plan.
fn check_written(experiment: &Experiment) {
    let written = experiment.to_yaml();
    let again = Experiment::parse(&written, "written")
        .unwrap_or_else(|error| panic!("{}\nin\n{written}", error.render(false)));
    assert_eq!(&again, experiment, "{written}");
    assert_eq!(again.to_yaml(), written);
    if experiment.repeats * experiment.modes.len() <= MAX_TRIALS {
        assert_eq!(Plan::new(&again, 1), Plan::new(experiment, 1));
    }
}
