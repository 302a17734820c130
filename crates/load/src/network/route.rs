//! The way of a connection: its destination, and the socket that leads there.

use super::rx_timestamp;
use crate::source;
use crate::target::Address;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, ipproto, sockopt};
use socket2::SockAddr;
use std::io;
use std::net::IpAddr;

/// The way of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route<'a> {
    /// Destination.
    pub(crate) address: &'a Address,
    /// Local address; `None`: as the kernel chooses.
    pub(crate) source: Option<IpAddr>,
}

impl<'a> From<&'a Address> for Route<'a> {
    fn from(address: &'a Address) -> Self {
        Self { address, source: None }
    }
}

impl Route<'_> {
    /// Creates a socket. TCP sockets have Nagle's algorithm off and receive timestamps, which unix sockets do not have.
    pub(super) fn socket(self, flags: SocketFlags) -> io::Result<OwnedFd> {
        let flags = flags | SocketFlags::CLOEXEC;
        let Some(address) = self.address.ip() else {
            return Ok(net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?);
        };
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        rx_timestamp::note(&socket)?;
        if let Some(source) = self.source {
            source::bind(&socket, source)?;
        }
        Ok(socket)
    }

    /// Creates a non-blocking UDP socket.
    pub(super) fn datagram_socket(self) -> io::Result<OwnedFd> {
        let is_ipv4 = self.address.ip().is_some_and(|address| address.is_ipv4());
        let family = if is_ipv4 { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = net::socket_with(family, SocketType::DGRAM, flags, None)?;
        if let Some(source) = self.source {
            source::bind(&socket, source)?;
        }
        Ok(socket)
    }

    /// Connects a socket of this route.
    pub(super) fn connect(self, socket: &OwnedFd) -> Result<(), Errno> {
        match self.address {
            Address::Ip(address) => net::connect(socket, address),
            Address::Unix(path) => net::connect(socket, &SocketAddrUnix::new(&**path)?),
        }
    }

    /// The destination as the kernel reads it.
    pub(super) fn to_kernel(self) -> io::Result<SockAddr> {
        match self.address {
            Address::Ip(address) => Ok((*address).into()),
            Address::Unix(path) => SockAddr::unix(path),
        }
    }
}
