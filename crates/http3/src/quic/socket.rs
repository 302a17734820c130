//! A UDP socket that moves several datagrams in one call: segmentation by the kernel (UDP_SEGMENT, UDP_GRO).

use nix::sys::socket::sockopt::{ReceiveTimestampns, UdpGroSegment};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage, cmsg_space,
    recvmsg, sendmsg, setsockopt,
};
use nix::sys::time::TimeSpec;
use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use std::cell::Cell;
use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::time::Duration;

/// Space for a timestamp and a segment size.
const NOTES_BYTES: usize = cmsg_space::<TimeSpec>() + cmsg_space::<i32>();
/// Receive buffer that is asked for; the kernel grants at most `net.core.rmem_max`.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// A UDP socket.
#[derive(Debug)]
pub struct Socket {
    descriptor: OwnedFd,
    /// The kernel splits what is sent in one call.
    splits: Cell<bool>,
}

/// Datagrams that were received in one call.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Their bytes.
    pub bytes: usize,
    /// Size of each but the last.
    pub segment_bytes: usize,
    /// Where they are from.
    pub from: Option<SocketAddr>,
    /// When they came, by the wall clock, if the kernel noted it.
    pub came: Option<Duration>,
}

impl Socket {
    /// Prepares a non-blocking socket. Datagrams must not be fragmented: connections find out which size arrives.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses that, or timestamps.
    pub fn new(descriptor: OwnedFd, is_ipv4: bool) -> Result<Self, Errno> {
        if is_ipv4 {
            sockopt::set_ip_mtu_discover(&descriptor, Ipv4PathMtuDiscovery::PROBE)?;
        } else {
            sockopt::set_ipv6_mtu_discover(&descriptor, Ipv6PathMtuDiscovery::PROBE)?;
        }
        sockopt::set_socket_recv_buffer_size(&descriptor, RECEIVE_BUFFER_BYTES)?;
        setsockopt(&descriptor, ReceiveTimestampns, &true).map_err(errno)?;
        // Without it each call receives one datagram.
        let _ = setsockopt(&descriptor, UdpGroSegment, &true);
        Ok(Self { descriptor, splits: Cell::new(true) })
    }

    /// Receives datagrams of one size, of which the last may be shorter.
    ///
    /// # Errors
    /// Returns an error of the kernel: [`Errno::AGAIN`] if nothing has come, [`Errno::CONNREFUSED`] if a connected socket's peer is gone.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<Received, Errno> {
        let mut notes = [0; NOTES_BYTES];
        let mut parts = [IoSliceMut::new(buffer)];
        let descriptor = self.descriptor.as_raw_fd();
        let message = recvmsg::<SockaddrStorage>(descriptor, &mut parts, Some(&mut notes), MsgFlags::empty())
            .map_err(errno)?;
        let mut received = Received {
            bytes: message.bytes,
            segment_bytes: message.bytes,
            from: message.address.as_ref().and_then(socket_address),
            came: None,
        };
        for note in message.cmsgs().ok().into_iter().flatten() {
            match note {
                ControlMessageOwned::ScmTimestampns(time) => received.came = Some(Duration::from(time)),
                ControlMessageOwned::UdpGroSegments(bytes) => {
                    received.segment_bytes = usize::try_from(bytes).unwrap_or(message.bytes);
                }
                _ => {}
            }
        }
        Ok(received)
    }

    /// Sends datagrams of this size, of which the last may be shorter. `to`: the destination, unless the socket is connected.
    ///
    /// # Errors
    /// Returns an error of the kernel: [`Errno::AGAIN`] if there is no room, [`Errno::CONNREFUSED`] if a connected socket's peer is gone.
    pub fn send(&self, bytes: &[u8], segment_bytes: usize, to: Option<SocketAddr>) -> Result<(), Errno> {
        let is_one = bytes.len() <= segment_bytes;
        if is_one || self.splits.get() {
            let size = u16::try_from(segment_bytes).unwrap_or(u16::MAX);
            let notes = [ControlMessage::UdpGsoSegments(&size)];
            match self.send_message(bytes, if is_one { &[] } else { &notes }, to) {
                // No offload of checksums: see udp(7).
                Err(Errno::IO | Errno::INVAL) if !is_one => self.splits.set(false),
                outcome => return outcome,
            }
        }
        bytes.chunks(segment_bytes).try_for_each(|datagram| self.send_message(datagram, &[], to))
    }

    fn send_message(
        &self,
        bytes: &[u8],
        notes: &[ControlMessage<'_>],
        to: Option<SocketAddr>,
    ) -> Result<(), Errno> {
        let to = to.map(SockaddrStorage::from);
        let descriptor = self.descriptor.as_raw_fd();
        match sendmsg(descriptor, &[IoSlice::new(bytes)], notes, MsgFlags::MSG_NOSIGNAL, to.as_ref()) {
            Ok(_) => Ok(()),
            // Larger than a hop takes: a probe whose loss says so.
            Err(nix::errno::Errno::EMSGSIZE) => Ok(()),
            Err(error) => Err(errno(error)),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let of_v4 = |address: &SockaddrIn| SocketAddr::from((address.ip(), address.port()));
    let of_v6 = |address: &SockaddrIn6| SocketAddr::from((address.ip(), address.port()));
    address.as_sockaddr_in().map(of_v4).or_else(|| address.as_sockaddr_in6().map(of_v6))
}

fn errno(errno: nix::errno::Errno) -> Errno {
    Errno::from_raw_os_error(errno as i32)
}
