//! Labs of other users. Only its user can read a registry, so these labs are recognised by their processes. The owner of a
//! process cannot be forged. Its command line can, so only known words of it are repeated.

use crate::sandbox::process_table;
use jiff::Timestamp;
use std::fs;
use std::path::Path;

/// Name of the program's processes.
const PROGRAM: &str = "meshmeter";
/// Commands that keep a lab up.
const COMMANDS: [&[&str]; 4] = [&["run"], &["fleet"], &["doctor", "--calibrate"], &["lab", "up"]];
/// The command that only holds a lab, with which the purpose of such a lab begins.
pub const HELD: &str = "lab up";
/// Arguments with which a command has no lab.
const WITHOUT_LAB: [&str; 6] = ["cluster", "--on=cluster", "--detach", "--dry-run", "--help", "-h"];
/// Longer command lines are not read to their end.
const MAX_ARGUMENTS: usize = 1000;

/// A lab of another user that seems to be up.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LabOfOtherUser {
    pub user: u32,
    /// Command without its arguments, such as `lab up`.
    pub command: String,
    pub started_at: Timestamp,
}

impl LabOfOtherUser {
    /// True if the lab is only held open and measures nothing by itself.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.command == HELD
    }
}

/// The lab of another user that is up for longest, if there is one: one that measures before one that is only held. Users whose processes are hidden are not seen.
#[must_use]
pub fn of_other_users() -> Option<LabOfOtherUser> {
    oldest(Path::new("/proc"), rustix::process::getuid().as_raw())
}

fn oldest(proc: &Path, own_user: u32) -> Option<LabOfOtherUser> {
    let boot_s = boot_time_s(proc)?;
    let pids = process_table::pids(proc).ok()?;
    pids.into_iter()
        .filter_map(|pid| lab_of(proc, pid, boot_s))
        .filter(|lab| lab.user != own_user)
        .min_by_key(|lab| (lab.is_held(), lab.started_at))
}

/// The lab that a process keeps up.
fn lab_of(proc: &Path, pid: i32, boot_s: i64) -> Option<LabOfOtherUser> {
    let stat = process_table::stat(proc, pid).ok()?;
    if stat.comm != PROGRAM || process_table::is_dead(&stat) {
        return None;
    }
    let process = proc.join(pid.to_string());
    let command = command_with_lab(&fs::read(process.join("cmdline")).ok()?)?;
    let after_boot_s = stat.starttime / rustix::param::clock_ticks_per_second();
    let started_at = Timestamp::from_second(boot_s.checked_add_unsigned(after_boot_s)?).ok()?;
    Some(LabOfOtherUser { user: user_of(&process)?, command, started_at })
}

/// The command of a command line that has a lab.
fn command_with_lab(line: &[u8]) -> Option<String> {
    let arguments: Vec<&[u8]> = line.split(|byte| *byte == 0).skip(1).take(MAX_ARGUMENTS).collect();
    if arguments.iter().any(|argument| WITHOUT_LAB.iter().any(|word| word.as_bytes() == *argument)) {
        return None;
    }
    let is_begin = |words: &&[&str]| {
        arguments.len() >= words.len()
            && words.iter().zip(&arguments).all(|(word, own)| word.as_bytes() == *own)
    };
    COMMANDS.into_iter().find(is_begin).map(|words| words.join(" "))
}

/// Real user of a process. The owner of its directory is root for a process that cannot be dumped.
fn user_of(process: &Path) -> Option<u32> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_ascii_whitespace().next()?.parse().ok()
}

/// Time at which the machine started.
fn boot_time_s(proc: &Path) -> Option<i64> {
    let stat = fs::read_to_string(proc.join("stat")).ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const BOOT_S: u64 = 1_790_000_000;

    /// A process table with these processes: PID, name, user, seconds after the start of the machine, arguments.
    fn table(processes: &[(i32, &str, u32, u64, &str)]) -> TempDir {
        let proc = tempfile::tempdir().expect("a temporary folder");
        fs::write(proc.path().join("stat"), format!("cpu 1 2\nbtime {BOOT_S}\n")).expect("it is writable");
        for (pid, name, user, after_boot_s, arguments) in processes {
            let process = proc.path().join(pid.to_string());
            fs::create_dir(&process).expect("it is writable");
            let write =
                |file: &str, text: String| fs::write(process.join(file), text).expect("it is writable");
            let ticks = after_boot_s * rustix::param::clock_ticks_per_second();
            write("stat", format!("{pid} ({name}) S{} {ticks}{}\n", " 1".repeat(18), " 1".repeat(30)));
            write("status", format!("Name:\t{name}\nUid:\t{user}\t0\t0\t0\n"));
            write("cmdline", format!("/usr/bin/{name} {arguments}").replace(' ', "\0") + "\0");
        }
        proc
    }

    #[test]
    fn oldest_lab_of_another_user_is_found() {
        let proc = table(&[
            (4, "meshmeter", 65_534, 10, "run mesh-modes"),
            (5, "meshmeter", 0, 60, "lab up --mesh istio"),
            (6, "meshmeter", 0, 70, "run \u{1b}[31m --set name=\n"),
            (7, "meshmeter", 0, 20, "serve --listen a:1"),
            (8, "meshmeter", 0, 20, "lab status"),
            (9, "meshmeter", 0, 20, "run mesh-modes --on cluster"),
            (10, "meshmeter", 0, 20, "run mesh-modes --dry-run"),
            (11, "other", 0, 20, "run mesh-modes"),
        ]);
        let lab = oldest(proc.path(), 65_534).expect("root has two");
        assert_eq!(
            (lab.user, lab.command.as_str()),
            (0, "run"),
            "nothing of a hostile command line is repeated"
        );
        assert_eq!(lab.started_at.as_second(), BOOT_S as i64 + 70);
        assert_eq!(oldest(proc.path(), 0).map(|lab| lab.user), Some(65_534));
    }

    #[test]
    fn unreadable_processes_and_own_labs_are_not_found() {
        let proc = table(&[(4, "meshmeter", 0, 10, "run mesh-modes")]);
        assert_eq!(oldest(proc.path(), 0), None);
        fs::write(proc.path().join("4/stat"), "4 (meshmeter").expect("it is writable");
        fs::write(proc.path().join("4/status"), [0xff; 9]).expect("it is writable");
        assert_eq!(oldest(proc.path(), 1), None);
    }
}
