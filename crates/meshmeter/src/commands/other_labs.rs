//! Other labs that are up when a measurement starts: each takes CPU from the other.

use crate::output::tell;
use experiment::environment::EnvironmentError;
use lab::registry::{self, LabOfOtherUser, LabStatus};

/// Purpose of a lab that exists for less than a second.
const DOCTOR: &str = "doctor";

/// State of a lab that is up, and its consequence.
const MEASURING_WORDS: (&str, &str) = ("another run is measuring here", "the two disturb each other");
const HELD_WORDS: (&str, &str) = ("a lab is up here", "its processes may disturb the measurement");

/// Prints a line if other labs are up. Must be called before this command's own lab is entered; the process inside that lab
/// prints nothing.
pub fn warn() {
    if lab::is_inside() {
        return;
    }
    let of_others = registry::of_other_users().map(|lab| of_other_user(&lab));
    if let Some(warning) = foremost(warning(registry::list()), of_others) {
        tell!("warning: {warning}");
    }
}

/// Of two warnings, that of a measurement, else the first.
fn foremost(own: Option<String>, of_others: Option<String>) -> Option<String> {
    [own, of_others].into_iter().flatten().min_by_key(|warning| warning.starts_with(HELD_WORDS.0))
}

/// Warning about these labs; `None` if none of them disturbs.
fn warning(labs: Result<Vec<LabStatus>, EnvironmentError>) -> Option<String> {
    // An entry that cannot be read is reported when this command enters its own lab, or by `lab status`.
    let labs = labs.ok()?;
    let running: Vec<&LabStatus> = labs.iter().filter(|lab| lab.running && lab.purpose != DOCTOR).collect();
    let measuring = running.iter().find(|lab| !lab.purpose.starts_with(registry::HELD));
    let (lab, (what, end)) = match (measuring, running.first()) {
        (Some(lab), _) => (lab, MEASURING_WORDS),
        (None, Some(lab)) => (lab, HELD_WORDS),
        (None, None) => return None,
    };
    let more = match running.len() - 1 {
        0 => String::new(),
        others => format!(", and {others} more"),
    };
    let since = lab.started_at.split('.').next().unwrap_or_default().replace('T', " ");
    Some(format!(
        "{what} since {since} UTC (`{}`, lab {}{more}); {end} (`meshmeter lab status`)",
        lab.purpose, lab.id
    ))
}

/// Warning about a lab of another user, of which only the command is known.
fn of_other_user(lab: &LabOfOtherUser) -> String {
    let (what, end) = if lab.is_held() { HELD_WORDS } else { MEASURING_WORDS };
    let since = lab.started_at.strftime("%Y-%m-%d %H:%M:%S");
    format!("{what} since {since} UTC (`{}` of user {}); {end}", lab.command, lab.user)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(id: &str, purpose: &str, running: bool) -> LabStatus {
        LabStatus {
            id: id.to_owned(),
            purpose: purpose.to_owned(),
            started_at: "2026-11-27T11:20:05.123456Z".to_owned(),
            running,
            processes: 1,
            pods: Vec::new(),
            directory: "/run/meshmeter/labs".into(),
            access: None,
        }
    }

    #[test]
    fn other_run_is_named_before_held_lab() {
        let held = || lab("k3x7ab", "lab up --mesh istio --mode sidecar", true);
        let run = || lab("m4y8cd", "run mesh-modes", true);
        assert_eq!(
            warning(Ok(vec![held(), run()])).unwrap(),
            "another run is measuring here since 2026-11-27 11:20:05 UTC (`run mesh-modes`, lab m4y8cd, and 1 more); \
             the two disturb each other (`meshmeter lab status`)"
        );
        assert_eq!(
            warning(Ok(vec![held()])).unwrap(),
            "a lab is up here since 2026-11-27 11:20:05 UTC (`lab up --mesh istio --mode sidecar`, lab k3x7ab); its \
             processes may disturb the measurement (`meshmeter lab status`)"
        );
    }

    #[test]
    fn lab_of_another_user_is_named_by_its_command() {
        let started_at = "2026-11-27T11:20:05Z".parse().unwrap();
        let lab = |command: &str| LabOfOtherUser { user: 1000, command: command.to_owned(), started_at };
        assert_eq!(
            of_other_user(&lab("run")),
            "another run is measuring here since 2026-11-27 11:20:05 UTC (`run` of user 1000); the two disturb each other"
        );
        assert!(of_other_user(&lab("lab up")).starts_with("a lab is up here since 2026"));
        let [run, held] = ["run", "lab up"].map(|command| Some(of_other_user(&lab(command))));
        assert_eq!(foremost(held.clone(), run.clone()), run);
        assert_eq!(foremost(None, held.clone()), held);
    }

    #[test]
    fn ended_labs_and_the_doctors_are_not_named() {
        let ended = lab("k3x7ab", "run mesh-modes", false);
        assert_eq!(warning(Ok(vec![ended, lab("m4y8cd", "doctor", true)])), None);
        assert_eq!(warning(Err(EnvironmentError::new("read lab.json", "no such file"))), None);
    }
}
