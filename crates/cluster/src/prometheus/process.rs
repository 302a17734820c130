//! For tests: Debian's Prometheus as a process.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;

/// Killed when dropped.
pub struct PrometheusProcess {
    child: Child,
    /// Address and port of its web interface.
    pub authority: String,
    _folder: tempfile::TempDir,
}

impl PrometheusProcess {
    /// Returns once it is ready.
    pub fn start(configuration: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("prometheus.yml");
        fs::write(&file, configuration).unwrap();
        let mut child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg("--web.listen-address=127.0.0.1:0")
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("prometheus is on the path (scripts/setup.sh test)");
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let (mut authority, mut is_ready, mut said) = (None, false, Vec::new());
        for line in lines.by_ref() {
            let listening = line.contains("Listening on").then(|| line.split("address=").nth(1)).flatten();
            authority = authority.or(listening.map(|address| address.trim().to_owned()));
            is_ready |= line.contains("Server is ready to receive web requests");
            said.push(line);
            // They come in any order.
            if is_ready && authority.is_some() {
                break;
            }
        }
        let authority = authority.unwrap_or_else(|| panic!("prometheus says where it listens: {said:#?}"));
        // Keep draining the log, so that it never blocks.
        thread::spawn(move || lines.for_each(drop));
        Self { child, authority, _folder: folder }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.authority)
    }
}

impl Drop for PrometheusProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
