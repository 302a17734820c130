//! `meshmeter doctor`: what works on this machine, what to do about the rest, and its noise floor.

mod check;
mod diagnosis;
mod isolation;
mod limits;
mod machine;
mod programs;
mod self_test;

use super::run::calibrate;
use crate::cli::DoctorArgs;
use crate::failure::{ENVIRONMENT_FAILED, Failure};
use crate::noise_floor;
use crate::output::{json, print};
use check::{Check, State};
use clap::builder::styling::{AnsiColor, Style};
use diagnosis::{Diagnosis, MeshCheck, ModeCheck};
use experiment::environment::EnvironmentError;
use lab::Entered;
use lab::environment::Programs;
use results::{Floor, Pauses};
use std::env;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Start of a line that reports no problem.
const OK: (&str, AnsiColor) = ("ok", AnsiColor::Green);

pub fn run(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let meshmeter =
        env::current_exe().map_err(|error| EnvironmentError::new("find this program's file", error))?;
    let programs = Programs { meshmeter, overrides: (&args.overrides).into() };
    if args.within_lab {
        return examine_lab(programs);
    }
    if args.self_test {
        return self_test::run(args.json);
    }
    if args.calibrate {
        return calibrate::doctor(args);
    }
    let diagnosis = diagnosis::examine(&programs, noise_floor::USUAL_TIME);
    print(&if args.json { json(&diagnosis) } else { render(&diagnosis) })?;
    Ok(if diagnosis.main_job_runs { ExitCode::SUCCESS } else { ExitCode::from(ENVIRONMENT_FAILED) })
}

fn examine_lab(programs: Programs) -> Result<ExitCode, Failure> {
    let lab = match lab::enter("doctor") {
        Ok(Entered::Outside(status)) => return Ok(status),
        Ok(Entered::Inside(lab)) => Ok(lab),
        Err(error) => Err(error),
    };
    print(&json(&diagnosis::examine_lab(lab, programs)))?;
    Ok(ExitCode::SUCCESS)
}

/// The diagnosis as text for people.
fn render(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    heading(&mut text, "This machine");
    for check in &diagnosis.checks {
        check_line(&mut text, check);
    }
    heading(&mut text, "\nModes");
    mode_lines(&mut text, &diagnosis.modes);
    if let Some(floor) = &diagnosis.floor {
        heading(&mut text, "\nFloor: what this machine shows when there is nothing to measure");
        floor_lines(&mut text, floor);
    }
    let verdict = if diagnosis.main_job_runs {
        "The main job can run here: `meshmeter run sidecar-cost`"
    } else {
        "The main job (`meshmeter run sidecar-cost`) cannot run here yet: see what is missing above"
    };
    heading(&mut text, &format!("\n{verdict}"));
    text
}

fn heading(text: &mut String, words: &str) {
    let bold = Style::new().bold();
    let _ = writeln!(text, "{bold}{words}{bold:#}");
}

fn check_line(text: &mut String, check: &Check) {
    let mark = match check.state {
        State::Ok => OK,
        State::Warn => ("warn", AnsiColor::Yellow),
        State::Missing => ("missing", AnsiColor::Red),
    };
    line(text, mark, &check.name, &check.fact, check.remedy.as_deref());
}

/// One line per mode that runs, with its meshes; modes that lack the same thing with a mesh share a line.
fn mode_lines(text: &mut String, modes: &[ModeCheck]) {
    let mut lacking: Vec<(&MeshCheck, Vec<&str>)> = Vec::new();
    for check in modes {
        let name = check.mode.name();
        let (running, others): (Vec<_>, Vec<_>) = check.meshes.iter().partition(|check| check.runs);
        if !running.is_empty() {
            let meshes: Vec<String> = running.iter().map(|check| format!("`mesh: {}`", check.mesh)).collect();
            line(text, OK, name, &format!("can run with {}", meshes.join(" or ")), None);
        }
        for other in others {
            let same = |first: &MeshCheck| (first.mesh, &first.lacks) == (other.mesh, &other.lacks);
            match lacking.iter_mut().find(|(first, _)| same(first)) {
                Some((_, names)) => names.push(name),
                None => lacking.push((other, vec![name])),
            }
        }
    }
    for (first, names) in lacking {
        let lacks = first.lacks.as_deref().unwrap_or_default();
        line(text, ("no", AnsiColor::Yellow), &names.join(", "), "", None);
        continued(text, &format!("with `mesh: {}`: {lacks}", first.mesh));
        if let Some(remedy) = &first.remedy {
            continued(text, &format!("→ {remedy}"));
        }
    }
}

fn line(text: &mut String, mark: (&str, AnsiColor), name: &str, fact: &str, remedy: Option<&str>) {
    let (word, colour) = mark;
    let style = colour.on_default();
    let _ = writeln!(text, "  {style}{word:<7}{style:#}  {}", format!("{name:<15} {fact}").trim_end());
    if let Some(remedy) = remedy {
        continued(text, &format!("→ {remedy}"));
    }
}

/// Continuation line, indented under the facts.
fn continued(text: &mut String, words: &str) {
    let _ = writeln!(text, "  {:<7}  {:<15} {words}", "", "");
}

fn floor_lines(text: &mut String, floor: &Floor) {
    let _ = writeln!(
        text,
        "  A timer wakes a thread {:.0} µs late at the median and {:.0} µs at p99.\n  \
         A byte to another thread over loopback TCP and back takes {:.0} µs at the median and {:.0} µs at p99.\n  \
         The same piece of work, timed again and again, varies by {:.1} % (half of the timings lie within that).",
        floor.timer_late_p50_us,
        floor.timer_late_p99_us,
        floor.loopback_round_trip_p50_us,
        floor.loopback_round_trip_p99_us,
        floor.noise_fraction * 100.0,
    );
    pause_lines(text, floor);
    let _ =
        writeln!(text, "  Differences between modes well below these figures are the machine, not the mesh.");
}

/// CPU time taken by the hypervisor: steal as the kernel counts it, and gaps seen by a spinning thread.
fn pause_lines(text: &mut String, floor: &Floor) {
    let seen = floor.pauses.as_ref().and_then(Pauses::overall).unwrap_or_default();
    if floor.steal_cores > 0.0 {
        let _ = writeln!(text, "  The hypervisor took {:.3} cores meanwhile.", floor.steal_cores);
    }
    let _ = if seen.notable_per_s > 0.0 {
        writeln!(
            text,
            "  This machine pauses for 0.1–{:.1} ms, {} times per second on each CPU (gaps in a thread that spins; steal does \
             not show them).",
            seen.longest_us.max(100.0) / 1000.0,
            per_second(seen.notable_per_s),
        )
    } else if floor.steal_cores <= 0.0 {
        writeln!(text, "  No hypervisor took time meanwhile.")
    } else {
        Ok(())
    };
    if seen.per_s > seen.notable_per_s {
        let _ = writeln!(
            text,
            "  Shorter gaps (over 20 µs, such as timer ticks) come {} times per second.",
            per_second(seen.per_s - seen.notable_per_s),
        );
    }
}

fn per_second(rate: f64) -> String {
    if rate >= 9.5 { format!("{rate:.0}") } else { format!("{rate:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::MeshKind;
    use results::{CpuPauses, Mode};

    fn diagnosis(main_job_runs: bool) -> Diagnosis {
        let check = |name, state, fact: &str, remedy: Option<&str>| Check {
            name: str::to_owned(name),
            state,
            fact: fact.to_owned(),
            remedy: remedy.map(str::to_owned),
        };
        let can = |mesh| MeshCheck { mesh, runs: true, lacks: None, remedy: None };
        let cannot = |mesh, lacks: &str| MeshCheck {
            mesh,
            runs: false,
            lacks: Some(lacks.to_owned()),
            remedy: Some("`meshmeter lab install` fetches it".to_owned()),
        };
        let sidecar = if main_job_runs {
            can(MeshKind::Envoy)
        } else {
            cannot(MeshKind::Envoy, "find Envoy: there is no such file")
        };
        Diagnosis {
            schema: diagnosis::DOCTOR_SCHEMA.to_owned(),
            checks: vec![
                check("cores", State::Ok, "2 CPUs", None),
                check("frequency", State::Warn, "governor powersave", Some("set it to performance")),
                check("redirect", State::Missing, "iptables is not here", Some("install it")),
            ],
            modes: vec![
                ModeCheck::new(Mode::None, vec![can(MeshKind::Envoy), can(MeshKind::Istio)]),
                ModeCheck::new(Mode::Sidecar, vec![sidecar, can(MeshKind::Istio)]),
                ModeCheck::new(
                    Mode::Ambient,
                    vec![cannot(MeshKind::Istio, "find ztunnel: it is not installed")],
                ),
                ModeCheck::new(
                    Mode::AmbientWaypoint,
                    vec![cannot(MeshKind::Istio, "find ztunnel: it is not installed")],
                ),
            ],
            main_job_runs,
            floor: Some(Floor {
                timer_late_p50_us: 22.4,
                timer_late_p99_us: 61.0,
                loopback_round_trip_p50_us: 31.2,
                loopback_round_trip_p99_us: 55.9,
                noise_fraction: 0.0042,
                steal_cores: 0.0,
                pauses: Some(Pauses {
                    threshold_us: 20.0,
                    idle: vec![CpuPauses {
                        observed_s: 0.5,
                        per_s: 311.0,
                        notable_per_s: 9.0,
                        longest_us: 4130.0,
                        ..CpuPauses::default()
                    }],
                    loaded: Vec::new(),
                }),
            }),
        }
    }

    #[test]
    fn diagnosis_is_rendered_as_list_with_remedies() {
        insta::assert_snapshot!(anstream::adapter::strip_str(&render(&diagnosis(true))).to_string());
    }

    #[test]
    fn hypervisor_is_not_ruled_out_if_steal_or_pauses_are_seen() {
        let lines = |steal_cores: f64, notable_per_s: f64| {
            let seen =
                CpuPauses { observed_s: 1.0, notable_per_s, longest_us: 300.0, ..CpuPauses::default() };
            let pauses = Some(Pauses { idle: vec![seen], ..Pauses::default() });
            let mut text = String::new();
            pause_lines(&mut text, &Floor { steal_cores, pauses, ..Floor::default() });
            text
        };
        assert_eq!(lines(0.0, 0.0), "  No hypervisor took time meanwhile.\n");
        assert!(
            lines(0.0, 1.25).contains("pauses for 0.1–0.3 ms, 1.2 times per second"),
            "{}",
            lines(0.0, 1.25)
        );
        assert!(!lines(0.1, 0.0).contains("No hypervisor") && !lines(0.0, 1.25).contains("No hypervisor"));
    }

    #[test]
    fn mode_that_lacks_a_program_of_one_mesh_runs_with_the_other() {
        let mut text = String::new();
        mode_lines(&mut text, &diagnosis(false).modes[1..2]);
        let text = anstream::adapter::strip_str(&text).to_string();
        assert!(text.contains("ok       sidecar         can run with `mesh: istio`\n"), "{text}");
        assert!(text.contains("with `mesh: envoy`: find Envoy: there is no such file\n"), "{text}");
    }

    #[test]
    fn blocker_of_main_job_is_printed_last() {
        let text = render(&Diagnosis { floor: None, ..diagnosis(false) });
        let last = text.trim_end().lines().last().unwrap();
        assert!(last.contains("cannot run here"), "{last}");
        assert!(!text.contains("Floor"), "a floor that could not be measured is not made up: {text}");
    }
}
