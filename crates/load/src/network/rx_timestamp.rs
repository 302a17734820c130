//! Receive timestamps from the kernel: when bytes arrived, so that a late read knows how late it is.
//!
//! The kernel stamps each packet by the wall clock when it enters the network stack. A read returns the
//! timestamp of the last packet that it returned bytes of (`SO_TIMESTAMPNS`, socket(7)). The reader converts
//! it to an age at once, so that only a step of the wall clock in between can distort it.
//!
//! The kernel starts to take timestamps a moment after the first socket of the machine requests them. Bytes
//! that arrive before that count as arriving when they are read: later than they did, never sooner.

use nix::libc::{SCM_TIMESTAMPNS, SOL_SOCKET};
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, cmsg_space, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use rustix::fd::{AsFd, AsRawFd as _};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::io::IoSliceMut;
use std::time::Duration;

/// Space for one timestamp.
pub(super) const NOTE_BYTES: usize = cmsg_space::<TimeSpec>();

/// Enables receive timestamps on the socket.
pub(super) fn note(socket: &impl AsFd) -> Result<(), Errno> {
    setsockopt(socket, ReceiveTimestampns, &true).map_err(errno)
}

/// Receives; returns the number of bytes and the timestamp of the last of them.
pub(super) fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> Result<(usize, Option<Duration>), Errno> {
    let mut notes = [0; NOTE_BYTES];
    let mut parts = [IoSliceMut::new(buffer)];
    let descriptor = socket.as_fd().as_raw_fd();
    let received =
        recvmsg::<()>(descriptor, &mut parts, Some(&mut notes), MsgFlags::empty()).map_err(errno)?;
    let came = received.cmsgs().ok().into_iter().flatten().find_map(|note| match note {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
        _ => None,
    });
    Ok((received.bytes, came))
}

/// The timestamp in control data that the kernel wrote into a buffer: a `cmsghdr` and a `timespec`, both in words of 64 bits.
pub(super) fn in_control_data(control: &[u8]) -> Option<Duration> {
    let (level, rest) = control.get(8..)?.split_first_chunk()?;
    let (kind, rest) = rest.split_first_chunk()?;
    let (seconds, rest) = rest.split_first_chunk()?;
    let nanoseconds = rest.first_chunk()?;
    let is_timestamp =
        (i32::from_ne_bytes(*level), i32::from_ne_bytes(*kind)) == (SOL_SOCKET, SCM_TIMESTAMPNS);
    is_timestamp.then(|| Duration::new(u64::from_ne_bytes(*seconds), u64::from_ne_bytes(*nanoseconds) as u32))
}

/// The clock of the timestamps.
pub(crate) fn wall_clock() -> Duration {
    let now = clock_gettime(ClockId::Realtime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

fn errno(errno: nix::errno::Errno) -> Errno {
    Errno::from_raw_os_error(errno as i32)
}
