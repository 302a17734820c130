//! `meshmeter lab install`.

use super::component_text;
use super::output::{json, print};
use crate::cli::InstallArgs;
use crate::failure::Failure;
use crate::interrupt;
use indicatif::{ProgressBar, ProgressStyle};
use lab::components::{Component, InstallNews, InstallObserver, Installation, install, installable};
use serde::Serialize;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Where standard error is no terminal, a line comes this often while something is made.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// What `--json` prints for each component.
#[derive(Serialize)]
struct InstalledComponent<'a> {
    name: &'static str,
    version: &'a str,
    /// The program, or the first file.
    path: &'a Path,
    already_there: bool,
}

pub fn run(args: &InstallArgs) -> Result<ExitCode, Failure> {
    let chosen: Vec<Component> = installable()
        .filter(|component| args.components.is_empty() || args.components.contains(component))
        .collect();
    let mut progress = Progress::new(interrupt::on_patient_signals()?);
    let installations = install(&chosen, &mut progress);
    progress.clear();
    let installations = installations?;
    print(&if args.json {
        let components: Vec<_> = installations.iter().map(installed_component).collect();
        json(&components)
    } else {
        component_text::installations(&installations)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn installed_component(installation: &Installation) -> InstalledComponent<'_> {
    let Installation { installed, already_there } = installation;
    InstalledComponent {
        name: installed.component.name(),
        version: &installed.version,
        path: &installed.path,
        already_there: *already_there,
    }
}

/// A live line on a terminal, a line now and then elsewhere.
struct Progress {
    stop: Arc<AtomicBool>,
    bar: Option<ProgressBar>,
    /// When the next plain line is due, in the time of the component at work.
    next_line: Duration,
    waiting_told: bool,
}

impl Progress {
    fn new(stop: Arc<AtomicBool>) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style =
                ProgressStyle::with_template("{spinner} {wide_msg}").expect("the template is constant");
            ProgressBar::new_spinner().with_style(style)
        });
        Self { stop, bar, next_line: LINE_EVERY, waiting_told: false }
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// A line that stays.
    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| plain_line(text)),
            None => plain_line(text),
        }
    }

    fn working(&mut self, component: Component, elapsed: Duration, last_line: &str) {
        let text = format!("{component}: {}", component_text::seconds_text(elapsed));
        match &self.bar {
            Some(bar) if last_line.is_empty() => bar.set_message(text),
            Some(bar) => bar.set_message(format!("{text}  {last_line}")),
            None if elapsed >= self.next_line => {
                plain_line(&text);
                self.next_line += LINE_EVERY;
            }
            None => {}
        }
        if let Some(bar) = &self.bar {
            bar.tick();
        }
    }
}

impl InstallObserver for Progress {
    fn news(&mut self, news: InstallNews<'_>) {
        match news {
            InstallNews::Waiting if !self.waiting_told => {
                self.waiting_told = true;
                self.line("waiting for another installation to end");
            }
            InstallNews::Waiting => {}
            InstallNews::Present(component) => self.line(&format!("{component}: there")),
            InstallNews::Flawed { component, flaw } => {
                self.line(&format!("{component}: {flaw}; it is made again"));
            }
            InstallNews::Started { component, verb, usually } => {
                self.next_line = LINE_EVERY;
                let version = component.pinned_version().unwrap_or_default();
                let source = component.source();
                self.line(&format!(
                    "{component}: {verb} {version} ({source}), which takes {usually} the first time on two idle cores"
                ));
            }
            InstallNews::Working { component, elapsed, last_line } => {
                self.working(component, elapsed, last_line);
            }
            InstallNews::Finished { component, elapsed, size_bytes } => self.line(&format!(
                "{component}: installed after {}, {}",
                component_text::seconds_text(elapsed),
                component_text::size_text(size_bytes)
            )),
        }
    }

    fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// One line on standard error. Nobody may be listening, which is no reason to stop.
fn plain_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
