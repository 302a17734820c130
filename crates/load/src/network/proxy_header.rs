//! Headers of the PROXY protocol, which a connection begins with before TLS and requests
//! (<https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt>).

use rustix::fd::OwnedFd;
use rustix::net;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// First bytes of version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, of a connection on behalf of somebody else.
const PROXY: u8 = 0x21;
/// Version 2, of a connection of the sender's own; without addresses.
const LOCAL: u8 = 0x20;
const TCP_OVER_IPV4: u8 = 0x11;
const TCP_OVER_IPV6: u8 = 0x21;

/// Version of the PROXY protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProxyProtocol {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

impl ProxyProtocol {
    /// The version as a number.
    #[must_use]
    pub fn version(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }

    /// The header of an open connection, with the connection's own addresses.
    pub(super) fn header(self, socket: &OwnedFd) -> io::Result<Vec<u8>> {
        let (own, peer) = (net::getsockname(socket)?, net::getpeername(socket)?);
        let peer = peer.and_then(|peer| peer.try_into().ok());
        Ok(self.header_of(own.try_into().ok().zip(peer)))
    }

    /// `ends`: source and destination; `None` over a unix socket, whose ends have none.
    fn header_of(self, ends: Option<(SocketAddr, SocketAddr)>) -> Vec<u8> {
        match (self, ends) {
            (Self::V1, None) => b"PROXY UNKNOWN\r\n".to_vec(),
            (Self::V1, Some((source, destination))) => {
                let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
                let (from, to) = (source.ip(), destination.ip());
                let ports = (source.port(), destination.port());
                format!("PROXY {family} {from} {to} {} {}\r\n", ports.0, ports.1).into_bytes()
            }
            (Self::V2, None) => binary(LOCAL, 0, &[]),
            (Self::V2, Some((source, destination))) => {
                let mut addresses = Vec::new();
                for end in [source, destination] {
                    match end.ip() {
                        IpAddr::V4(address) => addresses.extend(address.octets()),
                        IpAddr::V6(address) => addresses.extend(address.octets()),
                    }
                }
                addresses.extend(source.port().to_be_bytes());
                addresses.extend(destination.port().to_be_bytes());
                binary(PROXY, if source.is_ipv4() { TCP_OVER_IPV4 } else { TCP_OVER_IPV6 }, &addresses)
            }
        }
    }
}

fn binary(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    header.extend([command, family]);
    header.extend((addresses.len() as u16).to_be_bytes());
    header.extend(addresses);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(version: ProxyProtocol, source: &str, destination: &str) -> Vec<u8> {
        version.header_of(Some((source.parse().unwrap(), destination.parse().unwrap())))
    }

    #[test]
    fn text_names_both_ends() {
        let text =
            |source, destination| String::from_utf8(header(ProxyProtocol::V1, source, destination)).unwrap();
        assert_eq!(text("10.0.0.1:40000", "10.0.0.2:80"), "PROXY TCP4 10.0.0.1 10.0.0.2 40000 80\r\n");
        assert_eq!(text("[fd00::1]:1", "[fd00::2]:65535"), "PROXY TCP6 fd00::1 fd00::2 1 65535\r\n");
        assert_eq!(ProxyProtocol::V1.header_of(None), b"PROXY UNKNOWN\r\n");
    }

    #[test]
    fn binary_form_has_addresses_and_ports_in_network_order() {
        let mut expected = b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a\x21\x11\x00\x0c".to_vec();
        expected.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40, 0, 80]);
        assert_eq!(header(ProxyProtocol::V2, "10.0.0.1:40000", "10.0.0.2:80"), expected);
        let of_ipv6 = header(ProxyProtocol::V2, "[fd00::1]:1", "[fd00::2]:2");
        assert_eq!(of_ipv6.len(), 16 + 36);
        assert_eq!(of_ipv6[12..17], [0x21, 0x21, 0, 36, 0xfd]);
        assert_eq!(of_ipv6[16 + 31..], [2, 0, 1, 0, 2]);
        assert_eq!(ProxyProtocol::V2.header_of(None)[12..], [0x20, 0, 0, 0]);
    }
}
