//! Receivers of live metrics: a real Prometheus, and stubs that keep what they receive.

#![allow(dead_code, reason = "each test binary uses a part of this")]

pub mod otlp;
pub mod prometheus;
pub mod protobuf;
pub mod remote_write;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

/// A received request.
#[derive(Clone, Debug)]
pub struct Received {
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub at: Instant,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Head of a response after its version, such as `200 OK\r\nRetry-After: 1`. `None`: no response.
pub type Reply = Option<String>;

/// A receiver on its own port, which keeps what it receives.
pub struct Stub {
    authority: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Stub {
    /// `reply` is called with the number of each request, from 0, and the request.
    pub fn start(reply: impl Fn(usize, &Received) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let received = Arc::new(Mutex::new(Vec::new()));
        let (kept, reply) = (Arc::clone(&received), Arc::new(reply));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, reply) = (Arc::clone(&kept), Arc::clone(&reply));
                thread::spawn(move || serve(&stream, &kept, &*reply));
            }
        });
        Self { authority, received }
    }

    /// Accepts everything, with these headers.
    pub fn taking(headers: &'static str) -> Self {
        Self::start(move |_, _| Some(format!("204 No Content{headers}")))
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.authority)
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

/// Handles the requests of a connection until it closes.
fn serve(
    stream: &TcpStream,
    kept: &Mutex<Vec<Received>>,
    reply: &(dyn Fn(usize, &Received) -> Reply + Send + Sync),
) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        let number = {
            let mut kept = kept.lock().unwrap();
            kept.push(request.clone());
            kept.len() - 1
        };
        match reply(number, &request) {
            Some(head) => {
                let length = if head.contains("Content-Length") { "" } else { "\r\nContent-Length: 0" };
                let text = if head.contains("\r\n\r\n") {
                    format!("HTTP/1.1 {head}")
                } else {
                    format!("HTTP/1.1 {head}{length}\r\n\r\n")
                };
                if (&mut &*stream).write_all(text.as_bytes()).is_err() {
                    return;
                }
            }
            // Waits for the sender to close the connection.
            None => drop(reader.read_to_end(&mut Vec::new())),
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Received> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Received { path, headers, body, at: Instant::now() })
}
