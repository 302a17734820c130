//! Traffic of a network interface.

use experiment::schema::NetworkUsage;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

pub(crate) const POD_INTERFACE: &str = "eth0";

/// An interface of a network namespace, readable until dropped, whichever processes have ended.
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

    /// Since the interface was made; absent if there is none of its name.
    pub(crate) fn bytes(&self) -> Option<NetworkUsage> {
        // From its beginning, the table is made anew.
        let mut file = &*self.table;
        file.seek(SeekFrom::Start(0)).ok()?;
        let mut table = String::new();
        file.read_to_string(&mut table).ok()?;
        parse_interface(&table, self.name)
    }
}

fn parse_interface(table: &str, interface: &str) -> Option<NetworkUsage> {
    let counts =
        table.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
    let mut counts = counts.split_ascii_whitespace().map(str::parse);
    // Eight counts received, then eight sent; bytes lead each.
    let received_bytes = counts.next()?.ok()?;
    let sent_bytes = counts.nth(7)?.ok()?;
    Some(NetworkUsage { received_bytes, sent_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_found_by_its_whole_name() {
        let table = "Inter-|   Receive       |  Transmit\n face |bytes    packets errs |bytes\n\
                     \x20 eth01:       1       2    0    0    0     0          0         0     3       4    0    0    0     0       0          0\n\
                     \x20 eth0: 430407097   16121    0    0    0     0          0         0  1075049   10839    0    0    0     0       0          0\n";
        let expected = NetworkUsage { received_bytes: 430_407_097, sent_bytes: 1_075_049 };
        assert_eq!(parse_interface(table, "eth0"), Some(expected));
        assert_eq!(parse_interface(table, "eth1"), None);
    }

    #[test]
    fn an_interface_is_read_anew_each_time() {
        let interface = Interface::of_this_thread("lo").unwrap();
        let before = interface.bytes().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(interface.bytes().unwrap().received_bytes > before.received_bytes);
    }

    proptest::proptest! {
        #[test]
        fn any_table_is_parsed_without_a_panic(text in "\\PC*") {
            let _ = parse_interface(&text, "eth0");
        }
    }
}
