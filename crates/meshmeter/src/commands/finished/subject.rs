//! A finished measurement by its path: the directory of a run, a result of `meshmeter load`, or one of another load generator.

use crate::commands::report::folder_failure;
use crate::failure::Failure;
use crate::input;
use crate::output::tell;
use report::RunData;
use report::folder::FolderError;
use results::foreign::{self, DIALECTS};
use results::{LOAD_SCHEMA, LoadResult};
use serde::Deserialize;
use statistics::history::{FinishedRun, Recorded, of_foreign, of_load, of_run};
use std::io::Read as _;
use std::path::Path;

/// Largest result file that is read: hours of load with a histogram per second.
const MAX_RESULT_BYTES: u64 = 256 * 1024 * 1024;
/// Beginning of the schemas of our own files.
const OUR_SCHEMAS: &str = "meshmeter.";

/// Reads a finished measurement, without trials that noise of the machine disturbed: an exit status cannot say that it rests on
/// them.
pub fn read(path: &Path) -> Result<Recorded, Failure> {
    read_by(path, RunData::read)
}

/// Reads a finished measurement as its own report uses it: with noise of the machine accepted if that accepts it.
pub fn read_as_reported(path: &Path) -> Result<Recorded, Failure> {
    read_by(path, RunData::read_as_reported)
}

type ReadRun = fn(&Path) -> Result<RunData, FolderError>;

fn read_by(path: &Path, read: ReadRun) -> Result<Recorded, Failure> {
    let recorded = if path.is_dir() { of_folder(path, read) } else { of_file(path) }?;
    // As a history has it.
    Ok(Recorded { run: recorded.run.plain(), ..recorded })
}

fn of_folder(path: &Path, read: ReadRun) -> Result<Recorded, Failure> {
    let run = read(path).map_err(folder_failure)?;
    for note in &run.notes {
        tell!("note: {}: {note}", path.display());
    }
    Ok(of_run(&FinishedRun {
        path: &path.display().to_string(),
        experiment: &run.experiment,
        experiment_yaml: &run.experiment_yaml,
        host: &run.host,
        trials: &run.trials,
        summary: &run.summary,
    }))
}

#[derive(Deserialize)]
struct AnySchema {
    schema: Option<String>,
}

fn of_file(path: &Path) -> Result<Recorded, Failure> {
    let name = path.display().to_string();
    let contents = contents(path)?;
    let schema = serde_json::from_slice(&contents).ok().and_then(|AnySchema { schema }| schema);
    match schema.as_deref() {
        Some(LOAD_SCHEMA) => {
            let about = format!("read {name}");
            let result = LoadResult::from_json(&contents)
                .map_err(|error| Failure::from_usage(&error).about(&about))?;
            if !result.has_possible_counts() {
                return Err(Failure::usage("it has counts that no load can have").about(&about));
            }
            Ok(of_load(&name, &result))
        }
        Some(ours) if ours.starts_with(OUR_SCHEMAS) => {
            Err(Failure::usage(format!("{name}: {ours} is not a result that can be compared"))
                .with_hint("give the directory of a run, or what `meshmeter load --json FILE` writes"))
        }
        _ => {
            let result = foreign::read(&contents).map_err(|error| {
                Failure::from_usage(&error).about(&format!("read {name}")).with_hint(format!(
                    "results are directories of runs, what `meshmeter load --json FILE` writes, and results of {DIALECTS}"
                ))
            })?;
            Ok(of_foreign(&name, &result))
        }
    }
}

/// Contents of a result file, if it is not larger than results are.
pub fn contents(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    let mut text = Vec::new();
    let opened = input::open(path).and_then(|file| file.take(MAX_RESULT_BYTES + 1).read_to_end(&mut text));
    opened.map_err(|error| Failure::from_usage(&error).about(&format!("read {name}")))?;
    if text.len() as u64 > MAX_RESULT_BYTES {
        return Err(Failure::usage(format!("read {name}: it is larger than 256 MiB")));
    }
    Ok(text)
}
