//! A hostile program that is asked a question, by root and by an ordinary user. The test program starts
//! itself as that program.

use confinement::{Joinable, SystemCallFilter, confine_question};
use libtest_mimic::{Arguments, Failed, Trial};
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use tempfile::TempDir;
use test_support::intruder;

/// `nobody`.
const ORDINARY_USER: u32 = 65534;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["role:intrude", socket, secret, port] => intrude(Path::new(socket), Path::new(secret), port),
        ["role:ask", ..] => ask(&arguments[1..]),
        _ => return run(),
    }
    ExitCode::SUCCESS
}

fn run() -> ExitCode {
    let is_root = rustix::process::geteuid().is_root();
    let trial = |name, can_be: bool, test: fn() -> Result<(), Failed>| {
        Trial::test(name, test).with_ignored_flag(!can_be)
    };
    let trials = vec![
        trial("intruder_asked_by_root_reaches_nothing", is_root, || reaches_nothing(None)),
        trial("intruder_asked_by_ordinary_user_reaches_nothing", true, || reaches_nothing(ordinary_user())),
        trial("unconfined_intruder_reaches_machine", true, unconfined_intruder_reaches_machine),
        trial("exit_status_of_program_is_passed_on", true, exit_status_is_passed_on),
        trial("killed_question_leaves_no_process", true, killed_question_leaves_no_process),
        trial("program_that_cannot_run_is_named_as_such", true, program_that_cannot_run),
        trial("program_is_not_run_if_it_cannot_be_confined", true, refusing_machine),
    ];
    // A process that one test forks would keep the program that another one copies open for writing.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn ordinary_user() -> Option<u32> {
    rustix::process::geteuid().is_root().then_some(ORDINARY_USER)
}

/// Targets of an intruder, open to all users of the machine.
struct Machine {
    folder: TempDir,
    _socket: UnixListener,
    port: TcpListener,
}

impl Machine {
    fn new() -> std::io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let all = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o777));
        let socket = UnixListener::bind(folder.path().join("docker.sock"))?;
        fs::write(folder.path().join("secret"), "of the machine")?;
        // The directory of the test program may be closed to ordinary users.
        fs::create_dir(folder.path().join("programs"))?;
        fs::copy(std::env::current_exe()?, folder.path().join("programs/intruder"))?;
        all(folder.path())?;
        for name in ["docker.sock", "secret", "programs", "programs/intruder"] {
            all(&folder.path().join(name))?;
        }
        Ok(Self { folder, _socket: socket, port: TcpListener::bind("127.0.0.1:0")? })
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("programs/intruder")
    }

    fn run_as(&self, user: Option<u32>, role: &str) -> std::io::Result<Output> {
        let mut command = Command::new(self.program());
        let of_folder = ["docker.sock", "secret"].map(|name| self.folder.path().join(name));
        command.arg(role).args(of_folder).arg(self.port.local_addr()?.port().to_string());
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        command.output()
    }
}

/// Prints what succeeded, then `tried all`.
#[allow(clippy::print_stdout)]
fn intrude(socket: &Path, secret: &Path, port: &str) {
    let port = port.parse().expect("it is a port");
    let mut succeeded = intruder::intrude(socket, secret);
    if intruder::reaches_network(port) {
        succeeded.push("reach the network");
    }
    if std::env::vars().next().is_some() {
        succeeded.push("read the environment");
    }
    println!("{}\ntried all", succeeded.join("\n"));
}

/// Asks the intruder, and prints its output.
#[allow(clippy::print_stdout)]
fn ask(arguments: &[String]) {
    let program = std::env::current_exe().expect("proc is mounted");
    let mut command = Command::new(&program);
    command.arg("role:intrude").args(arguments).env_clear();
    let confinement = confine_question(&mut command, vec![program]).expect("it can be prepared");
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{}", confinement.explain(error)));
    print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
}

fn reaches_nothing(user: Option<u32>) -> Result<(), Failed> {
    let machine = Machine::new()?;
    let output = machine.run_as(user, "role:ask")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if text == "\ntried all\n" {
        return Ok(());
    }
    Err(format!("{text}{}", String::from_utf8_lossy(&output.stderr)).into())
}

/// The attempts succeed without confinement, as far as an ordinary user may make them.
fn unconfined_intruder_reaches_machine() -> Result<(), Failed> {
    let output = Machine::new()?.run_as(ordinary_user(), "role:intrude")?;
    let text = String::from_utf8_lossy(&output.stdout);
    for attempt in [
        "read a file of the machine",
        "list a directory of the machine",
        "connect to a socket of the machine",
        "see other processes",
        "be traced",
        "join a namespace",
        "reach the network",
        "read the environment",
    ] {
        if !text.lines().any(|line| line == attempt) {
            return Err(format!("{attempt}: {text}").into());
        }
    }
    Ok(())
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).env_clear();
    confine_question(&mut command, Vec::new()).expect("it can be prepared");
    command
}

fn exit_status_is_passed_on() -> Result<(), Failed> {
    for (script, code, signal) in [
        ("exit 7", Some(7), None),
        ("kill -ABRT $$; exit 3", None, Some(6)),
        ("exec sh -c 'kill -9 $$'", None, Some(9)),
    ] {
        let status = shell(script).status()?;
        if (status.code(), status.signal()) != (code, signal) {
            return Err(format!("`{script}` ended with {status}").into());
        }
    }
    Ok(())
}

fn killed_question_leaves_no_process() -> Result<(), Failed> {
    let script = "trap '' TERM INT HUP; setsid sleep 600 & echo started; exec sleep 600";
    let mut child = shell(script).stdout(Stdio::piped()).spawn()?;
    let mut output = BufReader::new(child.stdout.take().ok_or("it is piped")?);
    let mut text = String::new();
    output.read_line(&mut text)?;
    child.kill()?;
    child.wait()?;
    // Ends once no process has the output open any more.
    output.read_to_string(&mut text)?;
    if text == "started\n" { Ok(()) } else { Err(text.into()) }
}

fn program_that_cannot_run() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("program");
    fs::write(&program, "#!/no/interpreter\n")?;
    fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    let mut command = Command::new(&program);
    let confinement = confine_question(&mut command, vec![program])?;
    match command.status().map_err(|error| confinement.explain(error)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// A machine that refuses namespaces, as most containers do.
fn refusing_machine() -> Result<(), Failed> {
    let ask = || {
        rustix::thread::set_no_new_privs(true)?;
        SystemCallFilter::new(Joinable::Nothing).apply()?;
        let mut command = Command::new("/bin/true");
        let confinement = confine_question(&mut command, Vec::new())?;
        Ok::<_, std::io::Error>(command.status().map_err(|error| confinement.explain(error)))
    };
    // A filter is a thread's.
    match std::thread::spawn(ask).join().expect("it does not panic")? {
        Err(error) if error.to_string().contains("it is not run, since it cannot be confined here") => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}
