//! The cluster of one node that `scripts/cluster.sh` brings up.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Goes down when dropped, and with this process at the latest. The logs of a failed test stay: its message names their folder.
pub struct OneNodeCluster {
    folder: TempDir,
}

impl OneNodeCluster {
    pub fn up() -> Self {
        let cluster = Self { folder: tempfile::tempdir().unwrap() };
        let owner = std::process::id().to_string();
        cluster.run("up", ["--owner", &owner]);
        cluster
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a command of the script; fails unless it succeeds.
    pub fn run(&self, verb: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
        let output = self.try_run(verb, arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "cluster.sh {verb} {}: {}",
            self.folder().display(),
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    pub fn try_run(&self, verb: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
        self.command(verb, arguments).output().expect("the script runs")
    }

    pub fn command(&self, verb: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(script("cluster.sh"));
        command.arg(verb).arg(self.folder()).args(arguments);
        command
    }

    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.run("kubectl", arguments)
    }

    /// Makes an image of the program under test and gives it to the cluster, as `localhost/meshmeter:test`.
    pub fn import_meshmeter(&self) {
        let archive = self.folder().join("meshmeter.tar");
        let program = concat!("/meshmeter=", env!("CARGO_BIN_EXE_meshmeter"));
        let mut command = Command::new(script("oci_image.py"));
        command.args(["--name", "localhost/meshmeter:test", "--entrypoint", "/meshmeter"]);
        command.args(["--user", "65532:65532", "--program", program, "--output"]).arg(&archive);
        let output = command.output().expect("the script runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.run("import", [&archive]);
    }
}

impl Drop for OneNodeCluster {
    fn drop(&mut self) {
        let output = self.try_run("down", [""; 0]);
        // The logs are what says why a test failed.
        self.folder.disable_cleanup(std::thread::panicking());
        assert!(
            std::thread::panicking() || output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(name)
}
