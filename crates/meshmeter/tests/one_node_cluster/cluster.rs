//! The one-node cluster that `scripts/cluster.sh` brings up.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Condvar, Mutex, Weak};
use tempfile::TempDir;

/// Maximum concurrent clusters. Each has its own control plane, and its trials need their share of the CPUs.
const AT_ONCE: usize = 2;

/// Windows of [`SAMPLED_WINDOW`] then have two samples of each container: after an idle time a kubelet takes the next sample up to
/// 15 s later, whatever the interval, and later still on a busy machine.
const SHORT_SAMPLE_INTERVAL: &str = "1s";
pub const SAMPLED_WINDOW: &str = "25s";

static UP: Mutex<usize> = Mutex::new(0);
static GONE: Condvar = Condvar::new();

/// Permit for one of the concurrent clusters.
struct Place;

impl Place {
    fn take() -> Self {
        let up = UP.lock().expect("nobody panics with it");
        *GONE.wait_while(up, |up| *up == AT_ONCE).expect("nobody panics with it") += 1;
        Self
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *UP.lock().expect("nobody panics with it") -= 1;
        GONE.notify_one();
    }
}

/// Images that a cluster holds, by name.
static IMAGES: Mutex<BTreeMap<String, Weak<Image>>> = Mutex::new(BTreeMap::new());

/// The archive of an image of one program.
struct Image(TempDir);

impl Image {
    fn of(name: &str, program: &str) -> Arc<Self> {
        let mut images = IMAGES.lock().expect("a build that fails fails all tests");
        if let Some(image) = images.get(name).and_then(Weak::upgrade) {
            return image;
        }
        let image = Arc::new(Self(tempfile::tempdir().unwrap()));
        image.build(name, program);
        images.insert(name.to_owned(), Arc::downgrade(&image));
        image
    }

    fn build(&self, name: &str, program: &str) {
        // Without symbols a node unpacks less than half.
        let stripped = self.0.path().join(name);
        let strip = Command::new("strip").arg("-o").arg(&stripped).arg(program).status();
        assert!(strip.expect("the linker's package has it").success());
        let (entrypoint, image) = (format!("/{name}"), format!("localhost/{name}:test"));
        let mut command = Command::new(script("oci_image.py"));
        command.args(["--name", &image, "--entrypoint", &entrypoint, "--user", "65532:65532"]);
        command
            .args(["--program", &format!("{entrypoint}={}", stripped.display()), "--output"])
            .arg(self.path());
        let output = command.output().expect("the script runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("image.tar")
    }
}

/// A cluster. It goes down when dropped, at the latest with this process. The logs of a failed test are kept:
/// its message names their directory.
pub struct OneNodeCluster {
    folder: TempDir,
    /// Imported images, held so that concurrent clusters share them.
    images: Mutex<Vec<Arc<Image>>>,
    _place: Place,
}

impl OneNodeCluster {
    pub fn up() -> Self {
        Self::sampled_every(SHORT_SAMPLE_INTERVAL)
    }

    /// With this interval between a kubelet's samples of a container's usage.
    pub fn sampled_every(interval: &str) -> Self {
        let (folder, images) = (tempfile::tempdir().unwrap(), Mutex::default());
        let cluster = Self { folder, images, _place: Place::take() };
        let owner = std::process::id().to_string();
        cluster.run("up", ["--owner", &owner, "--sample-interval", interval]);
        cluster
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a command of the script, which must succeed.
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

    /// Imports an image of the program under test into the cluster, as `localhost/meshmeter:test`.
    pub fn import_meshmeter(&self) {
        self.import_program("meshmeter", env!("CARGO_BIN_EXE_meshmeter"));
    }

    /// Imports an image of a program of this machine into the cluster, as `localhost/NAME:test`.
    pub fn import_program(&self, name: &str, program: &str) {
        let image = Image::of(name, program);
        self.run("import", [image.path()]);
        self.images.lock().expect("nobody panics with it").push(image);
    }
}

impl Drop for OneNodeCluster {
    fn drop(&mut self) {
        let output = self.try_run("down", [""; 0]);
        // The logs show why a test failed.
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
