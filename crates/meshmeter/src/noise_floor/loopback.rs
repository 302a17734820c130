//! A connection over loopback, and an echo that sends back each byte.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

/// Maximum time for one byte; a slower one is an error.
const LOOPBACK_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn loopback_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect_timeout(&listener.local_addr()?, LOOPBACK_TIMEOUT)?;
    let (far, peer) = listener.accept()?;
    if peer != near.local_addr()? {
        return Err(io::Error::other("another process connected to the port first"));
    }
    for end in [&near, &far] {
        end.set_nodelay(true)?;
        end.set_read_timeout(Some(LOOPBACK_TIMEOUT))?;
        end.set_write_timeout(Some(LOOPBACK_TIMEOUT))?;
    }
    Ok((near, far))
}

pub(super) fn echo(mut end: TcpStream) -> io::Result<()> {
    let mut byte = [0];
    while end.read(&mut byte)? > 0 {
        end.write_all(&byte)?;
    }
    Ok(())
}
