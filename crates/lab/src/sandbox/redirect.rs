//! Sends a pod's traffic through its proxy without the application's knowledge, by rules in the pod's own
//! network namespace. The rules follow Istio's `istio-iptables` (pilot/cmd/pilot-agent,
//! `tools/istio-iptables`).
//!
//! Outbound: every TCP connection except the proxy's own and those on loopback goes to port 15001. Inbound:
//! connections to the application's ports go to port 15006. The proxy finds the original destination with
//! `SO_ORIGINAL_DST`. The proxy's own traffic is identified by its user (1337, as in Istio) or, if the lab
//! has only one user, by a mark that the proxy sets on its sockets. Not included: UDP (DNS capture), IPv6,
//! TPROXY.

use crate::Result;
use crate::sandbox::search_path::{find_program, search_path};
use components::output_within;
use experiment::environment::{EnvironmentError, ErrorContext as _};
pub use mesh::names::{INBOUND_PORT, OUTBOUND_PORT};
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// As in Istio; the group has the same number.
pub const PROXY_USER: u32 = 1337;
/// Mark on the proxy's sockets if it cannot have its own user.
pub const PROXY_MARK: u32 = 1337;

/// How a proxy's own traffic is recognized: by its user [`PROXY_USER`], or by [`PROXY_MARK`] on its sockets
/// (`SO_MARK`, for which it keeps a capability).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProxyIdentity {
    Uid,
    Mark,
}

impl ProxyIdentity {
    /// `uid` or `mark`, as in `host.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uid => "uid",
            Self::Mark => "mark",
        }
    }
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Redirect {
    pub outbound: bool,
    /// Destination addresses that bypass the proxy.
    pub excluded: Vec<Ipv4Addr>,
    pub inbound_ports: Vec<u16>,
}

/// The rules in the format of `iptables-restore`.
pub fn rules(redirect: &Redirect, identity: ProxyIdentity) -> String {
    let mut rules = String::from("*nat\n");
    // Writing to a string cannot fail.
    if !redirect.inbound_ports.is_empty() {
        rules.push_str(":MESHMETER_INBOUND - [0:0]\n:MESHMETER_IN_REDIRECT - [0:0]\n");
        rules.push_str("-A PREROUTING -p tcp -j MESHMETER_INBOUND\n");
        for port in &redirect.inbound_ports {
            let _ = writeln!(rules, "-A MESHMETER_INBOUND -p tcp --dport {port} -j MESHMETER_IN_REDIRECT");
        }
        let _ = writeln!(rules, "-A MESHMETER_IN_REDIRECT -p tcp -j REDIRECT --to-ports {INBOUND_PORT}");
    }
    if redirect.outbound {
        let own = match identity {
            ProxyIdentity::Uid => format!("-m owner --uid-owner {PROXY_USER}"),
            ProxyIdentity::Mark => format!("-m mark --mark {PROXY_MARK}"),
        };
        rules.push_str(":MESHMETER_OUTPUT - [0:0]\n:MESHMETER_REDIRECT - [0:0]\n");
        rules.push_str("-A OUTPUT -p tcp -j MESHMETER_OUTPUT\n");
        let _ = writeln!(rules, "-A MESHMETER_OUTPUT {own} -j RETURN");
        rules.push_str("-A MESHMETER_OUTPUT -o lo -j RETURN\n");
        rules.push_str("-A MESHMETER_OUTPUT -d 127.0.0.1/32 -j RETURN\n");
        for address in &redirect.excluded {
            let _ = writeln!(rules, "-A MESHMETER_OUTPUT -d {address}/32 -j RETURN");
        }
        rules.push_str("-A MESHMETER_OUTPUT -j MESHMETER_REDIRECT\n");
        let _ = writeln!(rules, "-A MESHMETER_REDIRECT -p tcp -j REDIRECT --to-ports {OUTBOUND_PORT}");
    }
    rules.push_str("COMMIT\n");
    rules
}

/// The distribution's default first, then each backend by name: some kernels have modules for only one.
const PROGRAMS: [&str; 3] = ["iptables-restore", "iptables-nft-restore", "iptables-legacy-restore"];

pub fn programs() -> Result<Vec<PathBuf>> {
    let programs: Vec<PathBuf> = PROGRAMS.into_iter().filter_map(find_program).collect();
    if programs.is_empty() {
        return Err(EnvironmentError::new("find iptables-restore", "it is not installed").with_hint(
            "install the package `iptables` (Debian, Ubuntu, Alpine, Arch) or `iptables-nft` (Fedora, RHEL)",
        ));
    }
    Ok(programs)
}

/// Environment of programs that call iptables by name: PATH, and a lock file that ordinary users may write
/// to.
pub(crate) fn environment(lock_file: &Path) -> BTreeMap<String, OsString> {
    [("PATH", search_path()), ("XTABLES_LOCKFILE", lock_file.into())]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

pub(crate) fn load(rules: &str, lock_file: &Path) -> Result<()> {
    let mut first_failure = None;
    for program in programs()? {
        match restore(&program, rules, lock_file) {
            Ok(()) => return Ok(()),
            Err(error) => first_failure = first_failure.or(Some((program, error))),
        }
    }
    let (program, error) = first_failure.expect("a list of programs that is not empty has a first failure");
    Err(EnvironmentError::new(format!("redirect traffic with {}", program.display()), error).with_hint(
        "the kernel needs the modules nf_nat, xt_REDIRECT, xt_owner and xt_mark; an ordinary user cannot have them loaded: \
         as root, `modprobe -a nf_nat xt_REDIRECT xt_owner xt_mark`",
    ))
}

/// Listing rules takes milliseconds.
const SAVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Rules of the calling thread's network namespace from each installed iptables variant, without counters. If
/// a variant fails, for example because the kernel lacks its modules, its entry says why.
pub(crate) fn saved(lock_file: &Path) -> Result<Vec<String>> {
    let (mut rules, mut kinds) = (Vec::new(), HashSet::new());
    for program in programs()? {
        let name = program.file_name().unwrap_or_default().to_string_lossy().replace("-restore", "-save");
        let program = program.with_file_name(&name);
        // The default is one of the others under another name.
        if !kinds.insert(fs::canonicalize(&program).unwrap_or_else(|_| program.clone())) {
            continue;
        }
        let operation = || format!("list rules with {}", program.display());
        let mut command = Command::new(&program);
        let output =
            output_within(command.env("XTABLES_LOCKFILE", lock_file), SAVE_TIMEOUT).context(operation())?;
        rules.push(name);
        if !output.status.success() {
            rules.push(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
        }
        rules.extend(tables(&String::from_utf8_lossy(&output.stdout)));
    }
    Ok(rules)
}

/// Rules of each chain in order, by table and chain, and policies other than `ACCEPT`. The kernel lists a
/// table once any program on the machine has loaded it, and lists tables and chains in varying order; neither
/// affects packets. A rule that is listed twice in a chain is kept once, since it acts once.
fn tables(saved: &str) -> Vec<String> {
    let mut chains: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    let mut table = "";
    for line in saved.lines() {
        let (chain, rule) = match line.split(' ').collect::<Vec<_>>()[..] {
            [name] if name.starts_with('*') => {
                table = &name[1..];
                continue;
            }
            ["-A", chain, ..] => (chain, format!("{table}: {line}")),
            // The numbers in `:OUTPUT DROP [7:420]` are packets and bytes.
            [chain, policy, _] if chain.starts_with(':') && !["ACCEPT", "-"].contains(&policy) => {
                (&chain[1..], format!("{table}: {} {policy}", &chain[1..]))
            }
            _ => continue,
        };
        let rules = chains.entry((table, chain)).or_default();
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    chains.into_values().flatten().collect()
}

fn restore(program: &Path, rules: &str, lock_file: &Path) -> io::Result<()> {
    let mut child = Command::new(program)
        .envs(environment(lock_file))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    // A few hundred bytes fit into the pipe, so this cannot block. If the reader has gone, its exit status
    // shows it.
    let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(rules.as_bytes()));
    let output = child.wait_with_output()?;
    if output.status.success() {
        return written;
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
    Err(io::Error::other(format!("{}: {}", output.status, lines.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sidecar_redirects_both_directions() {
        let excluded = vec![Ipv4Addr::new(10, 77, 0, 9)];
        let redirect = Redirect { outbound: true, excluded, inbound_ports: vec![8080] };
        insta::assert_snapshot!(rules(&redirect, ProxyIdentity::Uid), @r"
        *nat
        :MESHMETER_INBOUND - [0:0]
        :MESHMETER_IN_REDIRECT - [0:0]
        -A PREROUTING -p tcp -j MESHMETER_INBOUND
        -A MESHMETER_INBOUND -p tcp --dport 8080 -j MESHMETER_IN_REDIRECT
        -A MESHMETER_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006
        :MESHMETER_OUTPUT - [0:0]
        :MESHMETER_REDIRECT - [0:0]
        -A OUTPUT -p tcp -j MESHMETER_OUTPUT
        -A MESHMETER_OUTPUT -m owner --uid-owner 1337 -j RETURN
        -A MESHMETER_OUTPUT -o lo -j RETURN
        -A MESHMETER_OUTPUT -d 127.0.0.1/32 -j RETURN
        -A MESHMETER_OUTPUT -d 10.77.0.9/32 -j RETURN
        -A MESHMETER_OUTPUT -j MESHMETER_REDIRECT
        -A MESHMETER_REDIRECT -p tcp -j REDIRECT --to-ports 15001
        COMMIT
        ");
    }

    #[test]
    fn rules_are_independent_of_table_order_and_counters() {
        let nat = "*nat\n:OUTPUT ACCEPT [1:2]\n:MINE - [0:0]\n-A OUTPUT -m comment --comment \"a [b]\" -j MINE\n-A MINE -j RETURN\n\
                   -A MINE -j RETURN\nCOMMIT\n";
        let filter = "# Generated\n*filter\n:INPUT DROP [3:4]\nCOMMIT\n";
        let empty = "*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n";
        let expected = [
            "filter: INPUT DROP",
            "nat: -A MINE -j RETURN",
            "nat: -A OUTPUT -m comment --comment \"a [b]\" -j MINE",
        ];
        assert_eq!(tables(&format!("{nat}{filter}")), expected);
        assert_eq!(tables(&format!("{empty}{filter}{nat}")), expected);
        let swapped = tables("*nat\n-A MINE -j A\n-A MINE -j B\n");
        assert_ne!(swapped, tables("*nat\n-A MINE -j B\n-A MINE -j A\n"));
    }

    #[test]
    fn proxy_without_own_user_is_recognised_by_mark() {
        let rules = rules(&Redirect { outbound: true, ..Redirect::default() }, ProxyIdentity::Mark);
        assert!(rules.contains("-A MESHMETER_OUTPUT -m mark --mark 1337 -j RETURN\n"));
        assert!(!rules.contains("INBOUND"));
    }
}
