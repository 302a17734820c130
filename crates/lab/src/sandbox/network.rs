//! Links, addresses and routes through rtnetlink: a bridge in the lab's own namespace and a veth pair per
//! pod.
//!
//! The setup is that of a container runtime, without sources of noise: no spanning tree and no forwarding
//! delay, no multicast snooping, no IPv6 on the wire (neighbour discovery and router solicitations). Loopback
//! has both IPv4 and IPv6. Every lab has a network of its own that no other lab can reach, so all labs use
//! the same addresses.

use crate::Result;
use crate::sandbox::interface::POD_INTERFACE;
use crate::sandbox::namespace::Namespace;
use experiment::environment::ErrorContext as _;
use rtnetlink::packet_route::link::{BridgeStpState, InfoBridge, InfoData, InfoVeth, LinkAttribute};
use rtnetlink::{Handle, LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};
use std::future::Future;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd as _;
use std::path::Path;

pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// The pods' subnet is 10.77.0.0/16.
pub const PREFIX_LENGTH: u8 = 16;
/// Number of the pods' addresses.
pub const MAX_PODS: u16 = u16::MAX - 2;
/// Ports of a bridge (`BR_MAX_PORTS` of the kernel).
pub(crate) const MAX_PORTS: usize = 1023;
const LEAVING_GROUP: u32 = 1;
const BRIDGE: &str = "meshmeter0";

/// `number` starts at 0.
pub fn pod_address(number: u16) -> Ipv4Addr {
    let base = u32::from(Ipv4Addr::new(10, 77, 0, 2));
    Ipv4Addr::from(base + u32::from(number.min(MAX_PODS - 1)))
}

fn port_name(number: u16) -> String {
    format!("pod{number}")
}

pub(crate) fn set_up_switch(switch: &Namespace) -> Result<()> {
    in_namespace(switch, "set up the lab's bridge", || {
        disable_ipv6_on_new_interfaces()?;
        with_netlink(async |netlink| {
            bring_up(&netlink, "lo").await?;
            let bridge = LinkBridge::new(BRIDGE)
                .stp_state(BridgeStpState::Disabled)
                .forward_delay(0)
                .append_info_data(InfoBridge::MulticastSnooping(false))
                .up();
            netlink.link().add(bridge.build()).execute().await.map_err(failed)?;
            add_address(&netlink, BRIDGE, GATEWAY).await
        })
    })
}

pub(crate) fn connect_pod(switch: &Namespace, pod: &Namespace, number: u16) -> Result<()> {
    let operation = format!("connect pod {number} to the lab's bridge");
    in_namespace(pod, &operation, || {
        disable_ipv6_on_new_interfaces()?;
        // As in container runtimes: anyone in the pod may bind ports below 1024.
        std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")?;
        // Where load opens a connection per request, each local port would be taken for a minute after its
        // connection has ended: 470 connections per second to an address, and no more.
        std::fs::write("/proc/sys/net/ipv4/tcp_tw_reuse", "1")
    })?;
    let pod_file = pod.file().try_clone().context(operation.clone())?;
    in_namespace(switch, &operation, move || {
        with_netlink(async |netlink| {
            let peer = LinkMessageBuilder::<LinkUnspec>::new()
                .name(POD_INTERFACE)
                .setns_by_fd(pod_file.as_raw_fd())
                .build();
            let pair = LinkVeth::new(&port_name(number), POD_INTERFACE)
                .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
                .controller(interface_index(BRIDGE)?)
                .up();
            netlink.link().add(pair.build()).execute().await.map_err(failed)
        })
    })?;
    in_namespace(pod, &operation, move || {
        with_netlink(async |netlink| {
            for name in ["lo", POD_INTERFACE] {
                bring_up(&netlink, name).await?;
            }
            add_address(&netlink, POD_INTERFACE, pod_address(number)).await?;
            let index = interface_index(POD_INTERFACE)?;
            let default = RouteMessageBuilder::<Ipv4Addr>::new().gateway(GATEWAY).output_interface(index);
            netlink.route().add(default.build()).execute().await.map_err(failed)
        })
    })
}

/// Adds this number's address to a pod that already has its own.
pub(crate) fn add_pod_address(pod: &Namespace, number: u16) -> Result<()> {
    in_namespace(pod, &format!("give a pod address {}", pod_address(number)), move || {
        with_netlink(async |netlink| add_address(&netlink, POD_INTERFACE, pod_address(number)).await)
    })
}

/// Deletes the veth pairs of pods. It is not an error if one is already gone. The kernel waits for all CPUs
/// when it deletes links (some 50 ms), but only once per batch of links.
pub(crate) fn disconnect_pods(switch: &Namespace, numbers: Vec<u16>) -> Result<()> {
    in_namespace(switch, "disconnect pods from the lab's bridge", move || {
        with_netlink(async |netlink| {
            let mut any = false;
            for index in numbers.into_iter().filter_map(|number| interface_index(&port_name(number)).ok()) {
                let group = LinkAttribute::Group(LEAVING_GROUP);
                let link = LinkUnspec::new_with_index(index).append_extra_attribute(group).build();
                netlink.link().set(link).execute().await.map_err(failed)?;
                any = true;
            }
            if !any {
                return Ok(());
            }
            let mut delete = netlink.link().del(0);
            delete.message_mut().attributes.push(LinkAttribute::Group(LEAVING_GROUP));
            delete.execute().await.map_err(failed)
        })
    })
}

fn in_namespace(
    namespace: &Namespace,
    operation: &str,
    step: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> Result<()> {
    namespace.run(step)?.context(operation)
}

fn with_netlink<F>(requests: impl FnOnce(Handle) -> F) -> io::Result<()>
where
    F: Future<Output = io::Result<()>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (connection, netlink, _messages) = rtnetlink::new_connection()?;
        let connection = tokio::spawn(connection);
        let result = requests(netlink).await;
        connection.abort();
        result
    })
}

async fn bring_up(netlink: &Handle, interface: &str) -> io::Result<()> {
    let link = LinkUnspec::new_with_name(interface).up().build();
    netlink.link().set(link).execute().await.map_err(failed)
}

async fn add_address(netlink: &Handle, interface: &str, address: Ipv4Addr) -> io::Result<()> {
    let index = interface_index(interface)?;
    netlink.address().add(index, address.into(), PREFIX_LENGTH).execute().await.map_err(failed)
}

/// The kernel's error with its number, which formats it in the familiar way.
fn failed(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other),
    }
}

fn interface_index(name: &str) -> io::Result<u32> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    Ok(rustix::net::netdevice::name_to_index(socket, name)?)
}

/// Does nothing if the kernel was built or booted without IPv6.
fn disable_ipv6_on_new_interfaces() -> io::Result<()> {
    let switch = Path::new("/proc/sys/net/ipv6/conf/default/disable_ipv6");
    if switch.exists() { std::fs::write(switch, "1") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_have_distinct_addresses_in_subnet() {
        assert_eq!(pod_address(0).to_string(), "10.77.0.2");
        assert_eq!(pod_address(254).to_string(), "10.77.1.0");
        assert_eq!(pod_address(MAX_PODS - 1).to_string(), "10.77.255.254");
    }
}
