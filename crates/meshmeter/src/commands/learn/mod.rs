//! `meshmeter learn` answers "What is the topology of our own mesh, with its loads?"

mod queries;
mod salt;
mod summary;

use crate::cli::{LearnArgs, provenance_path};
use crate::commands::report;
use crate::failure::Failure;
use crate::input;
use crate::output::{self, Destination, destination, tell};
use experiment::topology::file::{MAX_NAMESPACE_LENGTH, label};
use learn::kiali;
use learn::prometheus::{AnswerError, Reader};
use learn::traces::{self, TraceError};
use learn::{Anonymiser, LearnError, Learned, Objects, Options, Provenance, Telemetry};
use results::units::shortened;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Name of a topology on standard output, and of one whose names are hashes.
const UNNAMED: &str = "learned";
/// Maximum size of a provenance file that is read, bytes.
const MAX_PROVENANCE_BYTES: u64 = 256 << 20;

pub fn run(args: &LearnArgs) -> Result<ExitCode, Failure> {
    match (&args.explain, &args.file) {
        (Some(name), Some(file)) => explain(name, file)?,
        _ if args.print_queries => output::print(&queries::describe(args))?,
        _ => learn(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn learn(args: &LearnArgs) -> Result<(), Failure> {
    let out = args.out.as_deref().map(Destination::from_path);
    let is_file = |path: &&Path| path.metadata().map_or(true, |metadata| metadata.is_file());
    let is_stdout = matches!(out, Some(Destination::Stdout));
    let beside = args.out.as_deref().filter(|_| !is_stdout).filter(is_file);
    destination::check(&destination::of_options([("--out", &args.out)]))?;
    let (anonymiser, salt) = salt::anonymiser(args, beside)?;
    let objects = read_objects(args, anonymiser.clone())?;
    let mut telemetry = read(args, Reader::new(Telemetry::new(anonymiser)))?;
    if let Some(path) = &args.kiali {
        read_kiali(path, &mut telemetry)?;
    }
    let telemetry = if args.traces.is_empty() { telemetry } else { read_traces(args, telemetry)? };
    // The file's name may be that of the shop.
    let name = if args.anonymise { UNNAMED.to_owned() } else { name_of(beside) };
    let options = Options { name, scale: args.scale, least_share: args.least_share };
    let learned = learn::learn(&telemetry, &objects, &options)
        .map_err(|error| refused(&error, !args.prometheus.is_empty() || args.kiali.is_some()))?;
    summary::print(&learned);
    match beside {
        Some(path) => {
            write_beside(path, &learned)?;
            salt.iter().try_for_each(salt::NewSalt::write)?;
        }
        None => tell!("the sources of the figures are not kept: `--out FILE` writes them beside a file"),
    }
    report::write(&out.unwrap_or(Destination::Stdout), &learned.yaml)
}

/// Telemetry of all sources.
fn read(args: &LearnArgs, mut reader: Reader) -> Result<Telemetry, Failure> {
    let (urls, files): (Vec<&String>, Vec<&String>) =
        args.prometheus.iter().partition(|source| source.contains("://"));
    if urls.len() + usize::from(!files.is_empty()) > 1 {
        let failure = Failure::usage("--prometheus: expected one URL, or files");
        return Err(failure.with_hint("two Prometheuses count the requests of a mesh twice"));
    }
    for path in files {
        let file = input::open(Path::new(path))
            .map_err(|error| Failure::usage(format!("read the answers `{path}`: {error}")))?;
        reader.read(BufReader::new(file)).map_err(|error| unreadable(path, &error))?;
    }
    for url in urls {
        queries::send(url, args, &mut reader)?;
    }
    Ok(reader.finish())
}

fn read_kiali(path: &Path, telemetry: &mut Telemetry) -> Result<(), Failure> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("read Kiali's graph `{}`: {error}", path.display()))
            .with_hint("docs/learn.md has the request that saves it")
    };
    let file = input::open(path).map_err(|error| unreadable(&error))?;
    kiali::read(telemetry, BufReader::new(file)).map_err(|error| unreadable(&error))
}

/// Adds traces: those of each file, and of each file in a directory, of which some may be damaged.
fn read_traces(args: &LearnArgs, telemetry: Telemetry) -> Result<Telemetry, Failure> {
    let unreadable = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::usage(format!("read the traces `{}`: {error}", path.display()))
    };
    let mut reader = traces::Reader::new(telemetry, args.sampling);
    for path in &args.traces {
        let is_folder = path.metadata().map_err(|error| unreadable(path, &error))?.is_dir();
        let files = if is_folder {
            files_in(path).map_err(|error| unreadable(path, &error))?
        } else {
            vec![path.clone()]
        };
        if files.is_empty() {
            return Err(unreadable(path, &"the directory has no file"));
        }
        let mut damaged = 0;
        for file in &files {
            let input = input::open(file).map_err(|error| unreadable(file, &error))?;
            match reader.read(input) {
                Err(error @ (TraceError::Json(_) | TraceError::Empty)) if damaged + 1 < files.len() => {
                    damaged += 1;
                    reader.leave_out_rest();
                    tell!("left out from here on: `{}`: {error}", file.display());
                }
                read => read.map_err(|error| unreadable(file, &error))?,
            }
        }
    }
    reader.finish().map_err(|error| Failure::usage(format!("read the traces: {error}")))
}

/// Files of a directory by name, without hidden ones.
fn files_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let is_hidden =
        |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| path.is_file() && !is_hidden(path));
    files.sort();
    Ok(files)
}

fn read_objects(args: &LearnArgs, anonymiser: Option<Anonymiser>) -> Result<Objects, Failure> {
    let mut objects = Objects::new(anonymiser);
    for path in &args.objects {
        let unreadable = |error: &dyn std::fmt::Display| {
            Failure::usage(format!("read the objects `{}`: {error}", path.display()))
        };
        let file = input::open(path).map_err(|error| unreadable(&error))?;
        objects.read(BufReader::new(file)).map_err(|error| unreadable(&error))?;
    }
    Ok(objects)
}

fn unreadable(path: &str, error: &AnswerError) -> Failure {
    let failure = Failure::usage(format!("read the answers `{path}`: {error}"));
    failure.with_hint("`meshmeter learn --print-queries` prints the commands that save answers")
}

fn refused(error: &LearnError, has_metrics: bool) -> Failure {
    let failure = Failure::usage(format!("learn a topology: {error}"));
    failure.with_hint(match error {
        LearnError::LeftOut(_) => {
            "a trace needs all its spans, each with a service, a start and an end: see docs/learn.md, Traces"
        }
        LearnError::Nothing if has_metrics => {
            "the period may have no requests, or Istio's metrics may not be scraped: see docs/learn.md"
        }
        LearnError::Nothing => {
            "requests begin with spans of servers and calls with those of clients: the traces may have neither"
        }
        LearnError::Sampling => {
            "name the share of the requests that is traced, such as `--sampling 10%`, or add `--prometheus`"
        }
        LearnError::TooLarge { .. } => "leave out calls that carry little, such as with `--least-share 1%`",
        LearnError::Invalid(_) => "`--least-share` leaves out calls that carry little",
    })
}

/// Name of a topology: its file's.
fn name_of(path: Option<&Path>) -> String {
    let stem = path.and_then(Path::file_stem).unwrap_or_default();
    label(&stem.to_string_lossy(), MAX_NAMESPACE_LENGTH).unwrap_or_else(|| UNNAMED.to_owned())
}

fn write_beside(topology: &Path, learned: &Learned) -> Result<(), Failure> {
    let text = output::json(&learned.provenance);
    Destination::File(provenance_path(topology)).write(text.as_bytes())
}

/// Provenance beside a topology file, if there is one.
pub(super) fn provenance_beside(topology: &Path) -> Result<Option<Provenance>, Failure> {
    if provenance_path(topology).exists() { read_provenance(topology).map(Some) } else { Ok(None) }
}

fn read_provenance(topology: &Path) -> Result<Provenance, Failure> {
    let path = provenance_path(topology);
    let unreadable = |reason: String| {
        let reason = shortened(&reason);
        Failure::usage(format!("read the provenance `{}`: {reason}", path.display()))
            .with_hint("`meshmeter learn --out FILE` writes it beside the topology")
    };
    let file = input::open(&path).map_err(|error| unreadable(error.to_string()))?;
    if file.metadata().map_err(|error| unreadable(error.to_string()))?.len() > MAX_PROVENANCE_BYTES {
        return Err(unreadable("it has more than 256 MiB".to_owned()));
    }
    serde_json::from_reader(BufReader::new(file)).map_err(|error| unreadable(error.to_string()))
}

fn explain(name: &str, topology: &Path) -> Result<(), Failure> {
    let text = read_provenance(topology)?.explain(name).ok_or_else(|| {
        Failure::usage(format!("`{}` has no call, service or driver `{name}`", topology.display()))
            .with_hint("a call is CALLER:CALLEE, such as `web:cart` or `shop/web:shop/cart`")
    })?;
    output::print(&text)
}
