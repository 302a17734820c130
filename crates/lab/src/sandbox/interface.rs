//! Traffic of a network interface.

use procfs_core::FromRead as _;
use procfs_core::net::InterfaceDeviceStatus;
use results::NetworkUsage;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::sync::Arc;

pub(crate) const POD_INTERFACE: &str = "eth0";

/// An interface of a network namespace. It stays readable until dropped, even after processes have ended.
#[derive(Clone, Debug)]
pub struct Interface {
    /// `/proc/<pid>/net/dev`.
    table: Arc<File>,
    name: &'static str,
}

impl Interface {
    pub fn of_this_thread(name: &'static str) -> io::Result<Self> {
        Ok(Self { table: Arc::new(File::open("/proc/thread-self/net/dev")?), name })
    }

    /// Bytes since the interface was created; absent if there is no interface of this name.
    pub(crate) fn bytes(&self) -> Option<NetworkUsage> {
        // Seeking to the start makes the kernel generate the table anew.
        let mut file = &*self.table;
        file.seek(SeekFrom::Start(0)).ok()?;
        traffic(file, self.name)
    }
}

/// Bytes of an interface in a table of interfaces; absent if it is not there.
pub(crate) fn traffic(table: impl io::Read, name: &str) -> Option<NetworkUsage> {
    let device = InterfaceDeviceStatus::from_read(table).ok()?.0.remove(name)?;
    Some(NetworkUsage { received_bytes: device.recv_bytes, sent_bytes: device.sent_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_is_read_afresh_each_time() {
        let interface = Interface::of_this_thread("lo").unwrap();
        let before = interface.bytes().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(interface.bytes().unwrap().received_bytes > before.received_bytes);
    }
}
