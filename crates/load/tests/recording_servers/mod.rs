//! HTTP/1.1 servers on TCP and unix sockets that record what they see of each connection.

#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Record of one connection.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Address of the client; `None` over a unix socket.
    pub peer: Option<SocketAddr>,
    /// Bytes before the first request.
    pub before: Vec<u8>,
    /// Heads of the requests.
    pub requests: Vec<String>,
}

/// Time at which the server closes connections, without announcing it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Closing {
    Never,
    /// After the first response.
    AfterFirst,
    /// Instead of the second response.
    InsteadOfSecond,
}

/// A running server. Its threads end with the test.
pub struct RecordingServer {
    /// Address of its TCP listener; unspecified for a unix socket.
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl RecordingServer {
    /// A server on loopback.
    pub fn on_tcp(closing: Closing) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        Self::serving(address, closing, move || {
            let (stream, peer) = listener.accept()?;
            stream.set_nodelay(true)?;
            Ok((stream, Some(peer)))
        })
    }

    /// A server on a unix socket.
    pub fn on_unix(path: &Path) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let nowhere = ([0, 0, 0, 0], 0).into();
        Self::serving(nowhere, Closing::Never, move || Ok((listener.accept()?.0, None)))
    }

    fn serving<S: Read + Write + Send + 'static>(
        address: SocketAddr,
        closing: Closing,
        accept: impl Fn() -> io::Result<(S, Option<SocketAddr>)> + Send + 'static,
    ) -> Self {
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let recorded = Arc::clone(&seen);
        thread::spawn(move || {
            while let Ok((stream, peer)) = accept() {
                let index = {
                    let mut all = recorded.lock().unwrap();
                    all.push(Seen { peer, ..Seen::default() });
                    all.len() - 1
                };
                let recorded = Arc::clone(&recorded);
                thread::spawn(move || serve(stream, closing, &recorded, index));
            }
        });
        Self { address, seen }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Its connections until now, in the order of their acceptance.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Number of its requests until now.
    pub fn requests(&self) -> u64 {
        self.seen().iter().map(|seen| seen.requests.len() as u64).sum()
    }
}

/// Answers requests without bodies until either side ends the connection.
fn serve(mut stream: impl Read + Write, closing: Closing, recorded: &Mutex<Vec<Seen>>, index: usize) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    for number in 0.. {
        let head = loop {
            // A header of the PROXY protocol may have empty lines.
            let start = bytes.windows(4).position(|window| window == b"GET ").unwrap_or(bytes.len());
            if let Some(length) = bytes[start..].windows(4).position(|window| window == b"\r\n\r\n") {
                break start..start + length + 4;
            }
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(read) => bytes.extend_from_slice(&buffer[..read]),
            }
        };
        let seen = &mut recorded.lock().unwrap()[index];
        seen.before.extend_from_slice(&bytes[..head.start]);
        seen.requests.push(String::from_utf8_lossy(&bytes[head.clone()]).into_owned());
        bytes.drain(..head.end);
        let is_unanswered = number == 1 && closing == Closing::InsteadOfSecond;
        if is_unanswered || stream.write_all(OK).is_err() || closing == Closing::AfterFirst {
            return;
        }
    }
}
