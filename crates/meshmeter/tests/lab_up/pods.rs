//! Commands in pods, forwarded ports, and several labs at once, with static Envoys, which are up within a
//! second.

use crate::command::{said, stderr, stdout};
use crate::held::{Registry, good};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Deserializer, Value};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

#[test]
fn command_runs_in_pod_with_user_files_and_directory() {
    let registry = Registry::new();
    let held = registry.up(&["--mode", "none"]);
    let exec = |command: &[&str]| registry.lab(&[&["exec", "client", "--"], command].concat());

    let address = held.lab["pods"][0]["address"].as_str().expect("it has an address");
    assert!(good(&exec(&["ip", "-brief", "address", "show", "eth0"])).contains(address));
    let folder = std::env::current_dir().expect("there is one");
    assert_eq!(good(&exec(&["pwd"])).trim(), folder.to_string_lossy());
    // Process IDs are those of the lab, and /proc matches them.
    assert_eq!(
        good(&exec(&["sh", "-c", "readlink /proc/self; cat /proc/1/comm"])).lines().nth(1),
        Some("meshmeter")
    );

    let mut cat = registry
        .command()
        .args(["lab", "exec", "client", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    cat.stdin.take().expect("piped").write_all(b"by a pipe").expect("it reads");
    assert_eq!(good(&cat.wait_with_output().expect("it is a child")), "by a pipe");

    assert_eq!(exec(&["sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(exec(&["sh", "-c", "kill -9 $$"]).status.code(), Some(137));
    let missing = exec(&["no-such-program"]);
    assert_eq!(missing.status.code(), Some(3));
    assert!(stderr(&missing).contains("run no-such-program in pod client: "), "{}", stderr(&missing));
    // Proxy settings of the machine are useless inside the pod.
    let mut proxied = registry.command();
    proxied.env("https_proxy", "http://127.0.0.1:9").args(["lab", "exec", "client", "--", "env"]);
    assert!(!good(&proxied.output().expect("the binary runs")).contains("https_proxy"));
}

#[test]
fn command_ends_with_its_signals_and_with_the_lab() {
    let registry = Registry::new();
    let held = registry.up(&["--mode", "none"]);
    let start = || {
        registry
            .command()
            .args(["lab", "exec", "client", "--", "sh", "-c", "echo ready >&2; exec sleep 1000"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs")
    };
    let is_ready = |child: &mut Child| assert_eq!(said(child).next().as_deref(), Some("ready"));

    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut sleeping = start();
        is_ready(&mut sleeping);
        kill_process(Pid::from_child(&sleeping), signal).expect("it runs");
        assert_eq!(sleeping.wait().expect("it is a child").code(), Some(status));
    }

    let mut sleeping = start();
    is_ready(&mut sleeping);
    good(&registry.lab(&["down", held.id()]));
    assert_eq!(sleeping.wait().expect("it is a child").code(), Some(137), "the kernel ends it with the lab");
}

#[test]
fn port_of_the_machine_is_forwarded_to_a_pod() {
    let registry = Registry::new();
    let held = registry.up(&["--mode", "none"]);
    let forward = || {
        let mut child = registry
            .command()
            .args(["lab", "forward", "server", "8080", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let said = Deserializer::from_reader(child.stdout.take().expect("piped")).into_iter::<Value>().next();
        let said = said.expect("it says where it listens").expect("JSON");
        (child, said["listen"].as_str().expect("an address").to_owned())
    };
    let get = |address: &str| {
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    };

    let (mut forwarding, address) = forward();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    for _ in 0..2 {
        assert!(get(&address).expect("it is passed on").starts_with("HTTP/1.1 200 OK"));
    }
    let port = address.rsplit(':').next().expect("it has a port");
    let taken = registry.lab(&["forward", "server", "8080", "--listen", port]);
    assert_eq!(taken.status.code(), Some(3));
    assert!(stderr(&taken).contains(&format!("listen on port {port}")), "{}", stderr(&taken));
    kill_process(Pid::from_child(&forwarding), Signal::INT).expect("it runs");
    assert!(forwarding.wait().expect("it is a child").success());
    assert!(get(&address).is_err(), "the port is closed");

    let (mut forwarding, _) = forward();
    let (status, _) = held.interrupt();
    assert!(status.success(), "{status}");
    let mut lines = said(&mut forwarding);
    assert!(lines.any(|line| line.contains("the lab has ended")));
    assert_eq!(forwarding.wait().expect("it is a child").code(), Some(3));
}

#[test]
fn lab_whose_directory_is_removed_reports_it_and_ends() {
    let registry = Registry::new();
    let mut held = registry.up(&["--mode", "none"]);
    std::fs::remove_dir_all(registry.path()).expect("nothing in it is busy");
    let (status, said) = held.ended();
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains(&format!("keep lab {} up: its folder", held.id())), "{said}");

    // Stopped before it has noticed.
    let held = registry.up(&["--mode", "none"]);
    std::fs::remove_dir_all(registry.path()).expect("nothing in it is busy");
    let (_, said) = held.interrupt();
    assert!(!said.contains("handles signals"), "{said}");
}

#[test]
fn envoy_that_dies_is_quoted_without_hint_to_removed_logs() {
    let registry = Registry::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let script = "[ \"$1\" = --version ] && exec echo 'envoy  version: c/1.40.0/Clean/RELEASE/BoringSSL'\n\
                  echo 'no such option' >&2; exit 1";
    let envoy = test_support::program(folder.path(), "envoy", script);
    let output = registry.lab(&["up", "--envoy", &envoy]);
    assert_eq!(output.status.code(), Some(3));
    let said = stderr(&output);
    assert!(said.contains("no such option") && !said.contains("/logs/"), "{said}");
    assert!(!registry.path().exists(), "nothing is left");
}

#[test]
fn one_of_two_labs_must_be_named() {
    let registry = Registry::new();
    let nothing = registry.lab(&["exec", "client", "--", "true"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(stderr(&nothing).contains("no lab is up"), "{}", stderr(&nothing));

    let (one, other) = (registry.up(&["--mode", "sidecar"]), registry.up(&["--mode", "gateway"]));
    let unnamed = registry.lab(&["exec", "client", "--", "true"]);
    assert_eq!(unnamed.status.code(), Some(2));
    assert!(
        stderr(&unnamed).contains(one.id()) && stderr(&unnamed).contains(other.id()),
        "{}",
        stderr(&unnamed)
    );
    good(&registry.lab(&["exec", "--lab", other.id(), "gateway", "--", "true"]));
    let missing = registry.lab(&["exec", "--lab", one.id(), "gateway", "--", "true"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("it has client, server"), "{}", stderr(&missing));

    // Each printed command works as printed.
    for lab in [&one, &other] {
        for proxy in lab.lab["proxies"].as_array().expect("it has proxies") {
            let words: Vec<&str> =
                proxy["config_dump"].as_array().expect("words").iter().filter_map(Value::as_str).collect();
            let output = registry.command().args(&words[1..]).output().expect("the binary runs");
            let dump: Value = serde_json::from_str(&good(&output)).expect("JSON");
            assert!(dump["configs"].is_array(), "{proxy}");
        }
    }
    let listed: Value = serde_json::from_str(&good(&registry.lab(&["status", "--json"]))).expect("JSON");
    assert_eq!(listed[0]["url"], one.lab["url"]);
    assert_eq!(listed[1]["components"], other.lab["components"]);
    assert!(stdout(&registry.lab(&["status"])).contains("what each proxy is configured with"));

    good(&registry.lab(&["down", "--all"]));
    for mut lab in [one, other] {
        assert!(lab.ended().0.success());
    }
    assert!(!registry.path().exists(), "nothing is left");
}

#[test]
fn a_umask_does_not_close_a_lab_to_its_proxies() {
    let registry = Registry::new();
    let held = registry.up_behind_umask(&["--mode", "sidecar"]);
    let url = held.lab["url"].as_str().expect("it is printed");
    let load =
        [env!("CARGO_BIN_EXE_meshmeter"), "load", "--clients", "1", "--requests", "5", "--json", "-", url];
    let output = registry.lab(&[&["exec", "client", "--"], &load[..]].concat());
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(result["requests"]["status"]["200"].as_u64().is_some_and(|count| count > 0), "{result}");
}

#[test]
fn invalid_arguments_are_usage_errors() {
    let registry = Registry::new();
    for (arguments, reason) in [
        (&["up", "--mesh", "envoy", "--mode", "ingress"][..], "`--mesh envoy` has no mode ingress"),
        (&["up", "--set", "proxy.workers=many"], "workers"),
        (&["up", "--set", "modes=[none, sidecar]"], "choose with --mesh and --mode"),
        (&["up", "--set", "mesh=istio"], "choose with --mesh and --mode"),
        (&["exec", "client"], "COMMAND"),
        (&["forward", "client", "0"], "0 is not in"),
    ] {
        let output = registry.lab(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(reason), "{arguments:?}: {}", stderr(&output));
    }
}
