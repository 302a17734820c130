//! TCP forwarder that can be blocked: connections stay open, but nothing passes any more.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

pub struct Forwarder {
    address: SocketAddr,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    is_blocked: AtomicBool,
    never: (Mutex<()>, Condvar),
}

impl Gate {
    /// Blocks while forwarding is blocked. A thread that waits here ends with the process.
    fn pass(&self) {
        if self.is_blocked.load(Ordering::Relaxed) {
            let guard = self.never.0.lock().expect("nobody panics with it");
            drop(self.never.1.wait_while(guard, |()| true));
        }
    }
}

impl Forwarder {
    pub fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let forwarder = Self { address: listener.local_addr().expect("it is bound"), gate: Arc::default() };
        let gate = Arc::clone(&forwarder.gate);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                gate.pass();
                let server = TcpStream::connect(server).expect("it is up");
                copy(&client, &server, &gate);
                copy(&server, &client, &gate);
            }
        });
        forwarder
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn block(&self) {
        self.gate.is_blocked.store(true, Ordering::Relaxed);
    }
}

fn copy(from: &TcpStream, to: &TcpStream, gate: &Arc<Gate>) {
    let (mut from, mut to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
    let gate = Arc::clone(gate);
    thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(bytes) = from.read(&mut buffer) {
            gate.pass();
            if bytes == 0 || to.write_all(&buffer[..bytes]).is_err() {
                break;
            }
        }
        // If the peer is gone, the connection is closed already.
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
}
