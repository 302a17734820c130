//! A lab that is up for a test, and its subcommands.

use crate::command::{meshmeter, stderr, stdout};
use crate::last_lines;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Deserializer, Value};
use std::fs;
use std::io::{BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use tempfile::TempDir;

/// Directory in which the labs of a test are registered. Its path is short, since it contains sockets.
pub struct Registry {
    path: PathBuf,
    _folder: TempDir,
}

impl Registry {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("mm-").tempdir_in("/tmp").expect("a temporary folder");
        // Proxies run as their own user, who must be able to traverse the directory.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).expect("it is ours");
        Self { path: folder.path().join("run"), _folder: folder }
    }

    pub fn command(&self) -> Command {
        let mut command = meshmeter();
        command.env("MESHMETER_RUNTIME_DIR", self.path());
        command
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs a subcommand of `meshmeter lab` until it exits.
    pub fn lab(&self, arguments: &[&str]) -> Output {
        self.command().arg("lab").args(arguments).output().expect("the binary runs")
    }

    /// Brings a lab up and waits until it is ready.
    pub fn up(&self, arguments: &[&str]) -> Held {
        Self::bring_up(self.command().args(["lab", "up", "--json"]).args(arguments))
    }

    /// Like [`Self::up`], for a user with a restrictive umask.
    pub fn up_behind_umask(&self, arguments: &[&str]) -> Held {
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            "umask 077 && exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_meshmeter"),
            "lab",
            "up",
            "--json",
        ]);
        Self::bring_up(shell.args(arguments).env("MESHMETER_RUNTIME_DIR", self.path()))
    }

    fn bring_up(command: &mut Command) -> Held {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let said = Deserializer::from_reader(output).into_iter::<Value>().next();
        let Some(Ok(lab)) = said else {
            let mut reason = String::new();
            let _ = child.stderr.take().expect("piped").read_to_string(&mut reason);
            let _ = child.kill();
            let _ = child.wait();
            panic!("the lab did not come up: {reason}");
        };
        Held { child, lab }
    }
}

impl Drop for Registry {
    /// For a failed test, prints the last output of the labs' components. Nothing of the labs may be left.
    fn drop(&mut self) {
        if std::thread::panicking() {
            last_lines::tell(&self.path);
            // Their processes have ended with the ones that held the labs.
            print!("{}", stderr(&self.lab(&["down"])));
        }
    }
}

/// A lab that is up; dropping this ends it.
pub struct Held {
    child: Child,
    /// JSON that `lab up` printed.
    pub lab: Value,
}

impl Held {
    pub fn id(&self) -> &str {
        self.lab["id"].as_str().expect("it has a name")
    }

    /// Ends the lab as Ctrl-C does.
    pub fn interrupt(mut self) -> (ExitStatus, String) {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it runs");
        self.ended()
    }

    /// Waits until it exits. Returns the exit status and its last output.
    pub fn ended(&mut self) -> (ExitStatus, String) {
        let mut said = String::new();
        let _ = self.child.stderr.take().expect("piped").read_to_string(&mut said);
        (self.child.wait().expect("it is a child"), said)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A test may have ended it already; the kernel ends the lab with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let mut said = String::new();
            let _ = self.child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
            println!("lab up said: {said}");
        }
    }
}

/// Output of a command, which must have succeeded.
pub fn good(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, stderr(output));
    stdout(output)
}
