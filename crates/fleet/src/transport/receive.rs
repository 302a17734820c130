//! Reads with the kernel's time of receipt.
//!
//! `SO_TIMESTAMPNS` (socket(7)) makes the kernel stamp packets by the wall clock when they reach the network stack; a read
//! returns the stamp of the last packet whose bytes it returned. The stamp becomes a time of the monotonic clock at once, so
//! that a step of the wall clock can harm one read at most.

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, cmsg_space, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use rustix::fd::{AsFd, AsRawFd as _};
use rustix::time::{ClockId, clock_gettime};
use std::io::{self, IoSliceMut};
use std::time::{Duration, Instant};

const CONTROL_BYTES: usize = cmsg_space::<TimeSpec>();

/// When the last bytes of a read came, and when they were read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    /// By the kernel; the time of reading where it has none.
    pub(crate) received: Instant,
    pub(crate) read: Instant,
    /// Uncertainty of the conversion from the wall clock: the time between the two readings of the monotonic clock around
    /// that of the wall clock. Absent where the kernel gave no time.
    pub(crate) uncertainty: Option<Duration>,
}

/// Asks the kernel to stamp what the socket receives from now on.
pub(crate) fn enable_timestamps(socket: &impl AsFd) -> io::Result<()> {
    setsockopt(socket, ReceiveTimestampns, &true).map_err(io::Error::from)
}

/// Reads once without waiting.
pub(crate) fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, Stamp)> {
    let mut control = [0; CONTROL_BYTES];
    let mut parts = [IoSliceMut::new(buffer)];
    let descriptor = socket.as_fd().as_raw_fd();
    let message = recvmsg::<()>(descriptor, &mut parts, Some(&mut control), MsgFlags::empty())?;
    let stamped = message.cmsgs().ok().into_iter().flatten().find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
        _ => None,
    });
    let read = Instant::now();
    let stamp = match stamped {
        None => Stamp { received: read, read, uncertainty: None },
        Some(stamped) => {
            let age = wall_clock().saturating_sub(stamped);
            let uncertainty = read.elapsed();
            Stamp { received: read.checked_sub(age).unwrap_or(read), read, uncertainty: Some(uncertainty) }
        }
    };
    Ok((message.bytes, stamp))
}

fn wall_clock() -> Duration {
    let now = clock_gettime(ClockId::Realtime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn read_late_received_when_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        enable_timestamps(&client).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        // The kernel begins to stamp some time after the first socket of the machine asks for it.
        let mut buffer = [0; 64];
        let stamp = loop {
            let before = Instant::now();
            server.write_all(b"abc").unwrap();
            let after = Instant::now();
            let (bytes, stamp) = receive(&client, &mut buffer).unwrap();
            assert_eq!(bytes, 3);
            if let Some(uncertainty) = stamp.uncertainty {
                assert!(stamp.received + uncertainty >= before && stamp.received <= after + uncertainty);
                break stamp;
            }
        };
        assert!(stamp.received <= stamp.read);
    }
}
