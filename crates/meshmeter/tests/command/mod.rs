//! The command as a process, and a service to load.

#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

/// `meshmeter`, to be given arguments.
pub fn meshmeter() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meshmeter"));
    command.stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub fn run(arguments: &[&str]) -> Output {
    meshmeter().args(arguments).output().expect("the binary runs")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `meshmeter serve` on a port of its own; ended when dropped.
pub struct Serving {
    child: Child,
    authority: String,
}

impl Serving {
    pub fn start(arguments: &[&str]) -> Self {
        let mut child = meshmeter()
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("it says where it listens");
        let (_, authority) = line.trim().split_once("http://").expect("it says where it listens");
        Self { authority: authority.trim_end_matches('/').to_owned(), child }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.authority)
    }

    /// The server's own count of requests, but for this one.
    pub fn requests(&self) -> u64 {
        let mut stream = TcpStream::connect(&self.authority).expect("it listens");
        write!(stream, "GET /meshmeter/counters HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let counters: serde_json::Value = serde_json::from_str(body).expect("JSON");
        counters["requests"].as_u64().expect("a count")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It is gone already where a test ended it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
