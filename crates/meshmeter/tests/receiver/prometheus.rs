//! A real Prometheus that receives remote writes. Debian's version, 2.42, only accepts version 1.0.

#[path = "../../../cluster/src/prometheus/process.rs"]
mod process;

use self::process::PrometheusProcess;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

pub struct Prometheus(PrometheusProcess);

impl Prometheus {
    pub fn start() -> Self {
        let options = ["--web.enable-remote-write-receiver", "--enable-feature=native-histograms"];
        Self(PrometheusProcess::start("", &options))
    }

    pub fn url(&self) -> String {
        self.0.url()
    }

    /// Result of an instant query, now.
    pub fn query(&self, query: &str) -> Vec<Value> {
        let answer = self.get(&format!("/api/v1/query?query={}", encoded(query)));
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    /// Result of a range query over the last minutes, as a panel sends it.
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
        let mut stream = TcpStream::connect(&self.0.authority).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: a\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let body = response.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {response}"))
    }
}

fn encoded(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric();
    text.bytes()
        .map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
