//! Roles of the test binary other than the harness.

use crate::{explain, inside};
use experiment::topology::Resources;
use lab::registry;
use lab::{ContainerSpec, ContainerUser, Entered, Lab, PodSpec, ProxyIdentity};
use rustix::process::{Pid, Signal};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use test_support::intruder;

/// Timeout of everything here that waits for the network.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);

#[allow(clippy::print_stdout, clippy::print_stderr)] // A process of its own, whose output its test reads.
pub fn play(role: &str, arguments: &[String]) -> ExitCode {
    match role {
        "inside" => in_lab("the lab's own tests", inside::run),
        "hold" => in_lab("to be taken down", hold),
        "down" => {
            let removed = registry::down(arguments.first().map(String::as_str));
            removed
                .map(|removed| println!("{}", serde_json::to_string(&removed).unwrap_or_default()))
                .map_or_else(
                    |error| {
                        eprintln!("{}", explain(&error));
                        ExitCode::FAILURE
                    },
                    |()| ExitCode::SUCCESS,
                )
        }
        "clear" => {
            println!("{}", registry::remove_stale().len());
            ExitCode::SUCCESS
        }
        "list" => {
            let labs = registry::list().expect("the registry can be read");
            println!("{}", serde_json::to_string(&labs).expect("plain values"));
            ExitCode::SUCCESS
        }
        "connect" => connect(&arguments[0], arguments.get(1).and_then(|mark| mark.parse().ok())),
        "spin" => loop {
            std::hint::spin_loop();
        },
        "sleep" => loop {
            std::thread::sleep(TEST_TIMEOUT);
        },
        "intrude" => {
            let mut succeeded = intruder::intrude(arguments[0].as_ref(), arguments[1].as_ref());
            succeeded.push("tried all");
            println!("{}", succeeded.join("\n"));
            ExitCode::SUCCESS
        }
        "leave-stray" => {
            let binary = std::env::current_exe().expect("proc is mounted");
            // In a process group of its own, and deliberately not waited for: it is to become an orphan.
            #[allow(clippy::zombie_processes)]
            let child = std::process::Command::new(binary)
                .arg("role:sleep")
                .process_group(0)
                .spawn()
                .expect("it is this binary");
            println!("{}", child.id());
            ExitCode::SUCCESS
        }
        other => {
            eprintln!("no role {other}");
            ExitCode::from(2)
        }
    }
}

/// Enters a lab and continues inside.
#[allow(clippy::print_stderr)]
fn in_lab(purpose: &str, go_on: impl FnOnce(Lab) -> Result<(), String>) -> ExitCode {
    match lab::enter(purpose) {
        Ok(Entered::Outside(status)) => status,
        Ok(Entered::Inside(lab)) => match go_on(lab) {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => {
                eprintln!("{reason}");
                ExitCode::FAILURE
            }
        },
        Err(error) => {
            eprintln!("{}", explain(&error));
            ExitCode::from(3)
        }
    }
}

/// A lab with two pods, one of them redirected, and processes in both. It runs until it is asked to end.
#[allow(clippy::print_stdout, clippy::needless_pass_by_value)]
fn hold(lab: Lab) -> Result<(), String> {
    let set_up = || {
        let mut client = lab.create_pod(&PodSpec::new("client"))?;
        let mut server = lab.create_pod(&PodSpec::new("server"))?;
        client.redirect(&lab::Redirect {
            outbound: true,
            inbound_ports: vec![8080],
            ..lab::Redirect::default()
        })?;
        client.start(&program(&lab, "app", ContainerUser::Lab, &["role:sleep"]))?;
        client.start(&program(&lab, "proxy", ContainerUser::Proxy, &["role:sleep"]))?;
        let leaver = server.start(&program(&lab, "leaver", ContainerUser::Lab, &["role:leave-stray"]))?;
        lab::wait_for("the stray's number is logged", TEST_TIMEOUT, || Ok(leaver.log_tail(1).pop()))?;
        Ok((client, server))
    };
    let pods = set_up().map_err(|error| explain(&error))?;
    println!("ready {}", lab.id());
    // Ends with the harness, which kills this lab on every way out. The timeout applies should even that
    // fail.
    lab::wait_for("the test asks us to stop", Duration::from_secs(300), || {
        Ok(lab.stop_requested().then_some(()))
    })
    .map_err(|error| explain(&error))?;
    drop(pods);
    Ok(())
}

/// A container that runs this binary in a pod.
pub fn program(lab: &Lab, name: &str, user: ContainerUser, arguments: &[&str]) -> ContainerSpec {
    ContainerSpec {
        name: name.to_owned(),
        program: std::env::current_exe().expect("proc is mounted"),
        arguments: arguments.iter().map(Into::into).collect(),
        environment: BTreeMap::new(),
        limits: Resources::default(),
        user,
        confined: None,
        working_directory: None,
        output_log: log_path(lab, name),
        pipe_error_output: false,
        pipe_input: false,
    }
}

/// Path of a log below the lab's private directory, so that it is removed with the lab.
pub fn log_path(lab: &Lab, name: &str) -> PathBuf {
    lab.private_dir().join(format!("{name}-{}.log", unique()))
}

fn unique() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Connects, with or without a mark, and prints the response.
#[allow(clippy::print_stdout)]
fn connect(address: &str, mark: Option<u32>) -> ExitCode {
    let address: SocketAddr = address.parse().expect("an address");
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    if let Some(mark) = mark {
        socket.set_mark(mark).expect("proxies may mark their sockets");
    }
    socket.connect_timeout(&address.into(), TEST_TIMEOUT).expect("the server listens");
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("a valid time");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    println!("{answer}");
    std::io::stdout().flush().expect("the log is writable");
    ExitCode::SUCCESS
}

/// Arguments that make [`connect`] connect as a proxy would.
pub fn proxy_connection(identity: ProxyIdentity, address: SocketAddr) -> Vec<String> {
    let mut arguments = vec!["role:connect".to_owned(), address.to_string()];
    if identity == ProxyIdentity::Mark {
        arguments.push(lab::redirect::PROXY_MARK.to_string());
    }
    arguments
}

/// Sends a signal to a process that a test has started.
pub fn send(pid: i32, signal: Signal) {
    let pid = Pid::from_raw(pid).expect("a process");
    // Fails only if it has ended meanwhile, which the test notices by itself.
    let _ = rustix::process::kill_process(pid, signal);
}

/// A file of a process in `/proc`.
pub fn proc_file(pid: u32, name: &str) -> String {
    std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join(name)).unwrap_or_default()
}
