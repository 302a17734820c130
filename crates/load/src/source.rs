//! Local addresses that connections are opened from.

use crate::spec::LoadSpec;
use crate::target::{Address, Targets};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::IpBindAddressNoPort;
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Maximum number of source addresses: a larger prefix is used up to this many from its first.
const MAX_SOURCES: u128 = 65_536;

/// The host addresses of a prefix, which connections are opened from in turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sources {
    /// As given: a single address has all bits.
    network: IpAddr,
    prefix: u32,
    /// The first host address, as a number.
    first: u128,
    count: u32,
}

impl Sources {
    /// Number of addresses; at least 1.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// True if the addresses are IPv4.
    #[must_use]
    pub fn is_ipv4(&self) -> bool {
        self.network.is_ipv4()
    }

    /// The address whose turn is at `index`.
    fn nth(&self, index: usize) -> IpAddr {
        let number = self.first + (index % self.count()) as u128;
        if self.is_ipv4() {
            Ipv4Addr::from_bits(number as u32).into()
        } else {
            Ipv6Addr::from_bits(number).into()
        }
    }

    /// Binds a socket to each address.
    ///
    /// # Errors
    /// Returns an error if an address cannot be bound to: usually it is not one of this machine.
    pub fn check(&self) -> Result<(), SourceError> {
        for address in (0..self.count()).map(|index| self.nth(index)) {
            try_to_bind(address).map_err(|cause| SourceError::Unusable { address, cause })?;
        }
        Ok(())
    }
}

impl FromStr for Sources {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(start, end)| (start, Some(end)));
        let network: IpAddr = address.parse().map_err(|_| SourceError::NotAnAddress)?;
        let number = match network {
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => address.to_bits(),
        };
        let bits = bits(network);
        let is_broadcast = matches!(network, IpAddr::V4(address) if address.is_broadcast());
        if is_broadcast || network.is_multicast() || prefix.is_none() && network.is_unspecified() {
            return Err(SourceError::NotAHost);
        }
        let prefix = match prefix {
            None => bits,
            Some(text) => {
                text.parse().ok().filter(|length| *length <= bits).ok_or(SourceError::Prefix(bits))?
            }
        };
        // The last address as seen from the first.
        let last = u128::MAX.checked_shr(128 - (bits - prefix)).unwrap_or(0);
        if number & last != 0 {
            return Err(SourceError::BeyondPrefix);
        }
        // The first address of a network names the network, and the last of IPv4 is its broadcast address.
        let (before, after) = match bits - prefix {
            0 | 1 => (0, 0),
            _ => (1, u128::from(network.is_ipv4())),
        };
        let count = (last - before - after).min(MAX_SOURCES - 1) + 1;
        Ok(Self { network, prefix, first: number + before, count: count as u32 })
    }
}

impl fmt::Display for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.prefix == bits(self.network) {
            self.network.fmt(f)
        } else {
            write!(f, "{}/{}", self.network, self.prefix)
        }
    }
}

/// Number of bits of an address.
fn bits(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Source addresses that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Not an IP address.
    #[error("expected an IP address, with or without a prefix, such as 10.0.0.0/24")]
    NotAnAddress,
    /// An address that is bound to, and that no connection comes from.
    #[error("no connection comes from this address: expected one of a host")]
    NotAHost,
    /// An invalid length of the prefix.
    #[error("the length of the prefix is a number from 0 to {0}")]
    Prefix(u32),
    /// The address is not that of a network.
    #[error("the address has bits beyond its prefix: 10.0.0.0/24 is a network, 10.0.0.5/24 is not")]
    BeyondPrefix,
    /// No address of a server is of the same family.
    #[error("the source address {source_address} is IPv{version}, and `{authority}` has no such address")]
    Family {
        /// As given.
        source_address: String,
        /// Version of the source address.
        version: u8,
        /// Host and port of the server.
        authority: String,
    },
    /// A socket cannot be bound to the address.
    #[error("use the source address {address}")]
    Unusable {
        /// The address.
        address: IpAddr,
        /// The kernel's error.
        #[source]
        cause: io::Error,
    },
}

impl Targets {
    /// Leaves out addresses of the other IP version than the sources.
    ///
    /// # Errors
    /// Returns an error if a server has no other.
    pub fn keep_reachable_from(&mut self, sources: &Sources) -> Result<(), SourceError> {
        let is_ipv4 = sources.is_ipv4();
        for server in &mut self.servers {
            let fits = |address: &Address| address.ip().is_some_and(|ip| ip.is_ipv4() == is_ipv4);
            if !server.addresses.iter().any(fits) {
                return Err(SourceError::Family {
                    source_address: sources.to_string(),
                    version: if is_ipv4 { 4 } else { 6 },
                    authority: server.authority.clone(),
                });
            }
            server.addresses.retain(fits);
        }
        Ok(())
    }
}

impl LoadSpec {
    /// The address that most of this generator's connections go to at first, and how many these are; `None` over a unix socket.
    #[must_use]
    pub fn most_to_one_address(&self) -> Option<(SocketAddr, usize)> {
        let mut counts: BTreeMap<SocketAddr, usize> = BTreeMap::new();
        for thread in 0..self.threads {
            let assignment = self.assignment(thread);
            for (server, place) in assignment.servers.iter().zip(&assignment.places) {
                let server = &self.targets.servers[*server];
                *counts.entry(server.addresses[place % server.spread()].ip()?).or_default() += 1;
            }
        }
        counts.into_iter().max_by_key(|(_, count)| *count)
    }
}

/// The turns of one thread among several.
pub(crate) struct SourceTurns {
    sources: Sources,
    next: usize,
    threads: usize,
}

impl SourceTurns {
    pub(crate) fn new(sources: Sources, (thread, threads): (usize, usize)) -> Self {
        Self { sources, next: thread, threads }
    }

    /// The address of the next connection.
    pub(crate) fn take(&mut self) -> IpAddr {
        let address = self.sources.nth(self.next);
        self.next += self.threads;
        address
    }
}

/// Binds a TCP socket to a local address. The port is left to `connect`: one that `bind` chose would be taken for all
/// destinations, and there are fewer of these than connections (`IP_BIND_ADDRESS_NO_PORT`, ip(7)).
pub(crate) fn bind(socket: &impl AsFd, source: IpAddr) -> io::Result<()> {
    setsockopt(socket, IpBindAddressNoPort, &true)?;
    Ok(net::bind(socket, &SocketAddr::new(source, 0))?)
}

fn try_to_bind(source: IpAddr) -> io::Result<()> {
    let family = if source.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, source)
}

impl SourceError {
    /// Remedy, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let Self::Unusable { address, cause } = self else { return None };
        (Errno::from_io_error(cause) == Some(Errno::ADDRNOTAVAIL)).then(|| {
            let prefix = bits(*address);
            let version = if address.is_ipv4() { "ipv4" } else { "ipv6" };
            format!(
                "it is not an address of this machine: add it with `ip addr add {address}/{prefix} dev DEVICE`, or allow \
                 others with the sysctl net.{version}.ip_nonlocal_bind; on loopback all of 127.0.0.0/8 works"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let sources: Sources = text.parse().unwrap();
        assert_eq!(sources.to_string(), text);
        (0..sources.count()).map(|index| sources.nth(index).to_string()).collect()
    }

    #[test]
    fn host_addresses_of_a_prefix_are_used_in_turn() {
        assert_eq!(all("10.0.0.7"), ["10.0.0.7"]);
        assert_eq!(all("10.0.0.6/31"), ["10.0.0.6", "10.0.0.7"]);
        assert_eq!(all("10.0.0.4/30"), ["10.0.0.5", "10.0.0.6"]);
        assert_eq!(all("fd00::/126"), ["fd00::1", "fd00::2", "fd00::3"]);
        assert_eq!(all("fd00::5"), ["fd00::5"]);
        for (text, count, last) in [
            ("10.1.0.0/24", 254, "10.1.0.254"),
            ("127.0.0.0/8", 65_536, "127.1.0.0"),
            ("0.0.0.0/0", 65_536, "0.1.0.0"),
            ("fd00::/64", 65_536, "fd00::1:0"),
            ("::/0", 65_536, "::1:0"),
        ] {
            let sources: Sources = text.parse().unwrap();
            assert_eq!(
                (sources.count(), sources.nth(count - 1).to_string()),
                (count, last.to_owned()),
                "{text}"
            );
            assert_eq!(sources.nth(count), sources.nth(0), "{text}");
        }
    }

    #[test]
    fn invalid_sources_are_errors() {
        for (text, start) in [
            ("ten", "expected an IP address"),
            ("10.0.0.0/33", "the length of the prefix is a number from 0 to 32"),
            ("fd00::/129", "the length of the prefix is a number from 0 to 128"),
            ("10.0.0.0/", "the length"),
            ("10.0.0.5/24", "the address has bits"),
            ("0.0.0.0", "no connection comes from"),
            ("::", "no connection comes from"),
            ("255.255.255.255", "no connection comes from"),
            ("224.0.0.0/24", "no connection comes from"),
            ("ff02::1", "no connection comes from"),
        ] {
            let error = text.parse::<Sources>().unwrap_err().to_string();
            assert!(error.starts_with(start), "{text}: {error}");
        }
    }

    #[test]
    fn threads_take_different_addresses() {
        let sources: Sources = "127.0.0.0/30".parse().unwrap();
        let mut turns = [0, 1].map(|thread| SourceTurns::new(sources, (thread, 2)));
        let taken: Vec<String> = turns.iter_mut().map(|turns| turns.take().to_string()).collect();
        assert_eq!(taken, ["127.0.0.1", "127.0.0.2"]);
    }

    #[test]
    fn address_of_another_machine_is_named_with_remedy() {
        // Documentation addresses (RFC 5737) are nobody's.
        let error = "192.0.2.7".parse::<Sources>().unwrap().check().unwrap_err();
        assert_eq!(error.to_string(), "use the source address 192.0.2.7");
        assert!(
            error.hint().is_some_and(|hint| hint.contains("ip addr add 192.0.2.7/32")),
            "{:?}",
            error.hint()
        );
        "127.0.0.0/28".parse::<Sources>().unwrap().check().unwrap();
    }
}
