//! Ports that the kernel chooses from for connections, of IPv4 and IPv6.

use std::fs;

/// The file that has the range.
pub const RANGE_FILE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// The first and the last port; `None` if the kernel does not say.
pub fn range() -> Option<(u32, u32)> {
    parse(&fs::read_to_string(RANGE_FILE).ok()?)
}

fn parse(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_has_two_numbers() {
        assert_eq!(parse("32768\t60999\n"), Some((32_768, 60_999)));
        assert_eq!(parse("what"), None);
    }
}
