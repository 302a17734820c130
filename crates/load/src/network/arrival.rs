//! When bytes came, as the kernel noted it: so that whoever reads them late knows how late.
//!
//! The kernel notes for each packet when it was handed to the network stack, by the wall clock, and tells with a read when the
//! last packet came of which it returned bytes (`SO_TIMESTAMPNS`, socket(7)). That is turned into how long ago at once, so
//! that no step of the wall clock but one in between can do harm.
//!
//! The kernel begins to note a moment after the first socket of the machine asks for it. What comes before counts as come when
//! it is read: later than it did, never sooner.

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, cmsg_space, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use rustix::fd::{AsFd, AsRawFd as _};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::io::IoSliceMut;
use std::time::Duration;

/// Room for one note.
const NOTE_BYTES: usize = cmsg_space::<TimeSpec>();

/// From now on the kernel notes when packets of the socket come.
pub(super) fn note(socket: &impl AsFd) -> Result<(), Errno> {
    setsockopt(socket, ReceiveTimestampns, &true).map_err(errno)
}

/// Receives; says how many bytes, and how long ago the last of them came. Zero where nothing is noted.
pub(super) fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> Result<(usize, Duration), Errno> {
    let mut notes = [0; NOTE_BYTES];
    let mut parts = [IoSliceMut::new(buffer)];
    let descriptor = socket.as_fd().as_raw_fd();
    let received =
        recvmsg::<()>(descriptor, &mut parts, Some(&mut notes), MsgFlags::empty()).map_err(errno)?;
    let came = received.cmsgs().ok().into_iter().flatten().find_map(|note| match note {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
        _ => None,
    });
    Ok((received.bytes, came.map_or(Duration::ZERO, |came| wall_clock().saturating_sub(came))))
}

fn wall_clock() -> Duration {
    let now = clock_gettime(ClockId::Realtime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

fn errno(errno: nix::errno::Errno) -> Errno {
    Errno::from_raw_os_error(errno as i32)
}
