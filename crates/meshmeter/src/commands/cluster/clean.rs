//! `meshmeter cluster clean`.

use crate::cli::CleanArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, tell};
use cluster::clean;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

pub(super) fn run(args: &CleanArgs) -> Result<ExitCode, Failure> {
    let stop = interrupt::on_signals()?;
    let cluster = args.connection.connection().open()?;
    let found = clean::find(&cluster, &args.namespace, args.run.as_deref())?;
    // What cannot be printed does not keep the next run's objects from being removed.
    let mut printed = Ok(());
    let mut say = |text: String| {
        if printed.is_ok() {
            printed = output::print(&(text + "\n"));
        }
    };
    if found.by_run.is_empty() {
        say("nothing is left of any run".to_owned());
    }
    if !found.not_listed.is_empty() {
        let kinds: Vec<&str> = found.not_listed.iter().copied().collect();
        tell!(
            "warning: this user may not list {}: objects of these kinds are not shown, and not removed by themselves",
            kinds.join(", ")
        );
    }
    let is_asked = args.all || args.run.is_some();
    for (run, objects) in &found.by_run {
        if is_asked {
            let is_detached = clean::end_runner(&cluster, run, objects)?;
            // The run may have written more objects before it ended.
            let now = if is_detached {
                clean::find(&cluster, &args.namespace, Some(run))?
            } else {
                Default::default()
            };
            let objects = now.by_run.get(run).unwrap_or(objects);
            clean::remove(&cluster, objects, &|| stop.load(Ordering::Relaxed))?;
        }
        let verb = if is_asked { "removed" } else { "has left" };
        say(format!("run {run}: {verb} {} objects", objects.len()));
        for object in objects {
            say(format!("  {object}"));
        }
    }
    if !is_asked && !found.by_run.is_empty() {
        say("remove them with --run RUN, or all with --all".to_owned());
    }
    printed.map(|()| ExitCode::SUCCESS)
}
