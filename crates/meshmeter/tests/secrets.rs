//! Passwords of addresses are in no output, however an address is given.

mod command;

use command::{meshmeter, run, stderr, stdout};
use std::collections::BTreeSet;
use std::fs;

const PASSWORD: &str = "s3cret";
/// Addresses with the password: right, with a mistyped scheme, without one, and with an unescaped slash in the password.
const ADDRESSES: [&str; 6] = [
    "http://tom:s3cret@127.0.0.1:1",
    "http:/tom:s3cret@127.0.0.1:1",
    "http//tom:s3cret@127.0.0.1:1",
    "tom:s3cret@127.0.0.1:1",
    "http://tom:x/s3cret@127.0.0.1:1/",
    "ftp://tom:s3cret@127.0.0.1:0/{1..x}",
];
/// Value names of options that take an address.
const ADDRESS_WORDS: [&str; 6] = ["URL", "ADDR", "HOST", "SERVICE:PORT", "HUB", "PREFIX"];

/// Commands with the option, or the last argument, that gets an address.
const COMMANDS: [&[&str]; 40] = [
    &["load", "--requests", "1"],
    &["load", "--requests", "1", "http://127.0.0.1:1", "--connect-to"],
    &["load", "--requests", "1", "http://127.0.0.1:1", "--source"],
    &["load", "--requests", "1", "http://127.0.0.1:1", "--remote-write"],
    &["load", "--requests", "1", "http://127.0.0.1:1", "--otlp"],
    &["load", "--requests", "1", "http://127.0.0.1:1", "--metrics-listen"],
    &["load", "http://127.0.0.1:1", "--rate"],
    &["load", "http://127.0.0.1:1", "--stages"],
    &["load", "http://127.0.0.1:1", "--header"],
    &["load", "http://127.0.0.1:1", "--no-such-option"],
    &["load", "merge"],
    &["run"],
    &["run", "sidecar-cost", "--dry-run", "--remote-write"],
    &["run", "sidecar-cost", "--dry-run", "--otlp"],
    &["run", "sidecar-cost", "--dry-run", "--prometheus"],
    &["run", "sidecar-cost", "--dry-run", "--istio=1.30.1", "--registry"],
    &["run", "sidecar-cost", "--dry-run", "--istio=1.30.1", "--registry-charts"],
    &["run", "sidecar-cost", "--dry-run", "--kubeconfig"],
    &["run", "sidecar-cost", "--dry-run", "--set"],
    &["serve", "--listen"],
    &["serve", "--tls-listen"],
    &["serve", "--tcp-listen"],
    &["serve", "--tcp-tls-listen"],
    &["serve", "--admin-listen"],
    &["serve", "--topology", "pair", "--connect"],
    &["topology", "convert", "pair", "--to", "kubernetes", "--image", "a", "--database"],
    &["size", "--target", "1000rps", "--from"],
    &["report"],
    &["topology", "check"],
    &["topology", "draw"],
    &["fleet", "--istiod"],
    &["fleet", "--istiod", "127.0.0.1:1", "--istiod-metrics"],
    &["fleet", "--istiod", "127.0.0.1:1", "--etcd-metrics"],
    &["fleet", "--istiod", "127.0.0.1:1", "--witness"],
    &["lab", "install", "--istio", "1.30.1", "--registry"],
    &["lab", "install", "--istio", "1.30.1", "--registry-charts"],
    &["lab", "install", "--istio", "1.30.1", "--registry-kubernetes"],
    &["cluster", "check", "--prometheus"],
    &["cluster", "rbac", "--prometheus"],
    &["cluster-worker", "--end-proxy"],
];

#[test]
fn passwords_of_addresses_are_in_no_output() {
    for command in COMMANDS {
        for address in ADDRESSES {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let output = meshmeter()
                .args(command)
                .arg(address)
                .current_dir(folder.path())
                .env("KUBECONFIG", folder.path().join("absent"))
                .env("MESHMETER_COMPONENTS", folder.path().join("components"))
                .output()
                .expect("the binary runs");
            let shown = stdout(&output) + &stderr(&output);
            assert!(!shown.is_empty() && !shown.contains(PASSWORD), "{command:?} {address}: {shown}");
        }
    }
}

#[test]
fn password_of_a_kubeconfig_is_in_no_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("kubeconfig");
    let text = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}], \
                clusters: [{name: c, cluster: {server: 'https://tom:s3cret@127.0.0.1:1'}}], users: [{name: u, user: {}}]}";
    fs::write(&file, text).expect("it is writable");
    let output = run(&["cluster", "check", "--kubeconfig", file.to_str().expect("text")]);
    let shown = stdout(&output) + &stderr(&output);
    assert!(shown.contains("https://127.0.0.1:1") && !shown.contains(PASSWORD), "{shown}");
}

#[test]
fn every_option_that_takes_an_address_is_in_the_table() {
    let tried: BTreeSet<&str> =
        COMMANDS.iter().copied().flatten().filter_map(|word| word.split('=').next()).collect();
    let mut found = BTreeSet::new();
    for command in [
        "load",
        "run",
        "serve",
        "size",
        "report",
        "fleet",
        "topology convert",
        "lab install",
        "lab up",
        "cluster check",
        "cluster rbac",
        "cluster attach",
        "cluster-worker",
        "doctor",
    ] {
        let help = stdout(&run(&command.split(' ').chain(["--help"]).collect::<Vec<_>>()));
        let options = help.lines().filter_map(|line| line.trim().strip_prefix("--")?.split_once(" <"));
        for (option, value) in options {
            if ADDRESS_WORDS
                .iter()
                .any(|word| value.split('>').next().is_some_and(|name| name.contains(word)))
            {
                found.insert(format!("--{option}"));
            }
        }
    }
    let missing: Vec<&String> = found.iter().filter(|option| !tried.contains(option.as_str())).collect();
    assert!(found.len() >= 16 && missing.is_empty(), "not in the table: {missing:?}, of {found:?}");
}
