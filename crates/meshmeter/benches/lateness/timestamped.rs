//! Receiving with the kernel's time of receipt.

use nix::sys::socket::{ControlMessageOwned, MsgFlags, cmsg_space, recvmsg};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSliceMut};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, SystemTime};

/// Receives; returns the number of bytes and when the kernel received the last of them, since the epoch. The kernel takes
/// timestamps a moment after the first socket requests them: bytes before that have arrived when they are read.
pub fn receive(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<(usize, Duration)> {
    let mut notes = [0; cmsg_space::<TimeSpec>()];
    let mut parts = [IoSliceMut::new(buffer)];
    let received = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut notes), MsgFlags::empty())?;
    let arrived = received.cmsgs()?.find_map(|note| match note {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
        _ => None,
    });
    let at = arrived.unwrap_or_else(|| SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default());
    Ok((received.bytes, at))
}
