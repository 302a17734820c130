//! A real Prometheus that receives remote writes. Debian's, 2.42, takes version 1.0 alone.

use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;

/// Killed when dropped.
pub struct Prometheus {
    child: Child,
    authority: String,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let configuration = folder.path().join("prometheus.yml");
        fs::write(&configuration, "").unwrap();
        let mut child = Command::new("prometheus")
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .args(["--web.listen-address=127.0.0.1:0", "--web.enable-remote-write-receiver"])
            .arg("--enable-feature=native-histograms")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("prometheus is on the path (scripts/setup.sh test)");
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut seen = Vec::new();
        let (mut authority, mut is_ready) = (None, false);
        for line in lines.by_ref() {
            let listening = line.contains("Listening on").then(|| line.split("address=").nth(1)).flatten();
            authority = authority.or(listening.map(|address| address.trim().to_owned()));
            is_ready |= line.contains("Server is ready to receive web requests");
            seen.push(line);
            // They come in either order.
            if is_ready && authority.is_some() {
                break;
            }
        }
        let authority = authority.unwrap_or_else(|| panic!("prometheus says where it listens: {seen:#?}"));
        // It goes on telling.
        thread::spawn(move || lines.for_each(drop));
        Self { child, authority, _folder: folder }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.authority)
    }

    /// The result of an instant query, now.
    pub fn query(&self, query: &str) -> Vec<Value> {
        let answer = self.get(&format!("/api/v1/query?query={}", encoded(query)));
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    /// The result of a query over the last minutes, as a panel asks.
    pub fn query_range(&self, query: &str) -> Vec<Value> {
        let now = jiff::Timestamp::now().as_second();
        let range = format!("start={}&end={}&step=1", now - 300, now + 1);
        let answer = self.get(&format!("/api/v1/query_range?query={}&{range}", encoded(query)));
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    /// The only value of an instant query.
    pub fn value(&self, query: &str) -> f64 {
        let result = self.query(query);
        assert_eq!(result.len(), 1, "{query}: {result:?}");
        result[0]["value"][1].as_str().unwrap().parse().unwrap()
    }

    fn get(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(&self.authority).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: a\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let body = response.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {response}"))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn encoded(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric();
    text.bytes()
        .map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
