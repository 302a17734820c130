//! A minimal program that answers a request by two calls at once: blocking sockets, a thread per connection,
//! and responses passed on unread. It shows what the machine itself adds.

use crate::contest::Outcome;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// More than a request or a response here has.
const BUFFER_BYTES: usize = 16 << 10;

/// Starts it and returns its host and port. It ends with this process.
pub fn start(callees: [&str; 2]) -> Outcome<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let authority = listener.local_addr()?.to_string();
    let callees = callees.map(str::to_owned);
    thread::spawn(move || {
        for caller in listener.incoming().flatten() {
            let callees = callees.clone();
            // It fails when the caller has closed the connection.
            thread::spawn(move || serve(caller, &callees));
        }
    });
    Ok(authority)
}

fn serve(mut caller: TcpStream, callees: &[String; 2]) -> io::Result<()> {
    let [mut one, mut two] = [TcpStream::connect(&callees[0])?, TcpStream::connect(&callees[1])?];
    for connection in [&caller, &one, &two] {
        connection.set_nodelay(true)?;
    }
    let mut buffer = vec![0; BUFFER_BYTES];
    while caller.read(&mut buffer)? > 0 {
        for callee in [&mut one, &mut two] {
            callee.write_all(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")?;
        }
        let mut length = 0;
        for callee in [&mut one, &mut two] {
            length = callee.read(&mut buffer)?;
        }
        caller.write_all(&buffer[..length])?;
    }
    Ok(())
}
