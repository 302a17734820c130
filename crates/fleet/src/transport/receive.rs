//! Reads with the kernel's receive timestamp.
//!
//! `SO_TIMESTAMPNS` (socket(7)) makes the kernel timestamp packets by the wall clock when they reach the
//! network stack; a read returns the timestamp of the last packet whose bytes it returned. Timestamps are
//! converted to the monotonic clock immediately, so a step of the wall clock affects at most one read.

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, cmsg_space, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use rustix::fd::{AsFd, AsRawFd as _};
use rustix::time::{ClockId, clock_gettime};
use std::io::{self, IoSliceMut, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// The kernel starts to stamp within milliseconds; the fleet does not wait longer for one that does not.
const STAMPING_TIMEOUT: Duration = Duration::from_secs(1);
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(1);
/// Maximum difference between consecutive readings of two clocks, unless the thread lost the CPU.
pub(super) const MAX_UNCERTAINTY: Duration = Duration::from_micros(10);
const MAX_CLOCK_READINGS: usize = 4;

const CONTROL_BYTES: usize = cmsg_space::<TimeSpec>();

/// Number of writes in a check of kernel timestamps.
const CHECK_WRITES: usize = 200;
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// When the last bytes of a read were received and read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    /// Kernel timestamp, or the time of reading without one.
    pub(crate) received: Instant,
    pub(crate) read: Instant,
    /// Uncertainty of the conversion from the wall clock: the time between the two readings of the monotonic
    /// clock around that of the wall clock. Absent without a kernel timestamp.
    pub(crate) uncertainty: Option<Duration>,
    /// All bytes of the read arrived after this; absent if unknown.
    pub(crate) after: Option<Instant>,
    /// True if the read filled its buffer: the kernel timestamp may belong to bytes that it left.
    pub(crate) filled_buffer: bool,
}

/// Makes the kernel timestamp what the socket receives from now on.
pub(crate) fn enable_timestamps(socket: &impl AsFd) -> io::Result<()> {
    setsockopt(socket, ReceiveTimestampns, &true).map_err(io::Error::from)
}

/// A socket with timestamps enabled. While it is open, the kernel timestamps other sockets from their first byte.
#[derive(Debug)]
pub(crate) struct Stamping {
    _socket: UdpSocket,
}

impl Stamping {
    /// Returns once the kernel timestamps packets, which starts some time after the first socket of the
    /// machine enables it.
    pub(crate) fn start() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        enable_timestamps(&socket)?;
        socket.connect(socket.local_addr()?)?;
        socket.set_read_timeout(Some(ATTEMPT_TIMEOUT))?;
        let begun = Instant::now();
        let mut buffer = [0];
        while begun.elapsed() < STAMPING_TIMEOUT {
            socket.send(&buffer)?;
            let received = receive(&socket, &mut buffer);
            if received.is_ok_and(|(_, stamp)| stamp.uncertainty.is_some()) {
                break;
            }
            std::thread::sleep(ATTEMPT_TIMEOUT);
        }
        Ok(Self { _socket: socket })
    }
}

/// Reads once without blocking.
pub(crate) fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, Stamp)> {
    let mut control = [0; CONTROL_BYTES];
    let room = buffer.len();
    let mut parts = [IoSliceMut::new(buffer)];
    let descriptor = socket.as_fd().as_raw_fd();
    let message = recvmsg::<()>(descriptor, &mut parts, Some(&mut control), MsgFlags::empty())?;
    let stamped = message.cmsgs().ok().into_iter().flatten().find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
        _ => None,
    });
    let read = Instant::now();
    let filled_buffer = message.bytes == room;
    let stamp = match stamped {
        None => Stamp { received: read, read, uncertainty: None, after: None, filled_buffer },
        Some(stamped) => {
            let (monotonic, wall, uncertainty) = both_clocks(read);
            let received = monotonic.checked_sub(wall.saturating_sub(stamped)).unwrap_or(read);
            let received = received.min(read);
            Stamp { received, read, uncertainty: Some(uncertainty), after: None, filled_buffer }
        }
    };
    Ok((message.bytes, stamp))
}

/// Current p99 error of receive timestamps on this machine: how far they lie outside the intervals of writes
/// to a loopback connection. Absent without a loopback or without kernel timestamps.
pub(crate) fn check_timestamps() -> Option<Duration> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    let reader = TcpStream::connect(listener.local_addr().ok()?).ok()?;
    enable_timestamps(&reader).ok()?;
    reader.set_read_timeout(Some(CHECK_TIMEOUT)).ok()?;
    let (mut writer, _) = listener.accept().ok()?;
    writer.set_nodelay(true).ok()?;
    let mut buffer = [0; 64];
    let mut errors = Vec::with_capacity(CHECK_WRITES);
    for _ in 0..CHECK_WRITES {
        let before = Instant::now();
        writer.write_all(&buffer).ok()?;
        let after = Instant::now();
        let (bytes, stamp) = receive(&reader, &mut buffer).ok()?;
        // The kernel starts to stamp some time after it is asked to.
        if stamp.uncertainty.is_none() || bytes != buffer.len() {
            continue;
        }
        let early = before.saturating_duration_since(stamp.received);
        errors.push(early.max(stamp.received.saturating_duration_since(after)));
    }
    errors.sort_unstable();
    errors.get((errors.len() * 99).div_ceil(100).saturating_sub(1)).copied()
}

/// The monotonic clock, the wall clock and the uncertainty between them. Reads again if the thread lost the
/// CPU in between.
fn both_clocks(now: Instant) -> (Instant, Duration, Duration) {
    let read = |monotonic: Instant| (monotonic, wall_clock(), monotonic.elapsed());
    let mut best = read(now);
    for _ in 1..MAX_CLOCK_READINGS {
        if best.2 <= MAX_UNCERTAINTY {
            break;
        }
        let again = read(Instant::now());
        if again.2 < best.2 {
            best = again;
        }
    }
    best
}

fn wall_clock() -> Duration {
    let now = clock_gettime(ClockId::Realtime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive_timestamps_lie_within_their_writes() {
        let _stamping = Stamping::start().unwrap();
        let begun = Instant::now();
        // The kernel starts to stamp some time after the first socket of the machine enables it.
        let error = loop {
            if let Some(error) = check_timestamps() {
                break error;
            }
            assert!(begun.elapsed() < 60 * STAMPING_TIMEOUT, "the kernel stamps nothing");
        };
        assert!(error < CHECK_TIMEOUT, "{error:?}");
    }

    #[test]
    fn receive_timestamp_is_time_of_send_not_of_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        enable_timestamps(&client).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        // The kernel starts to stamp some time after the first socket of the machine enables it.
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
