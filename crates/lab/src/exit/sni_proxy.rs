//! The SNI proxy behind an egress gateway: nginx, which reads the server name in a connection's ClientHello
//! and forwards the connection without decrypting it.
//!
//! The setup follows Istio's documentation for wildcard domains: it runs beside the gateway's own proxy in
//! the same pod. One difference: a table in its configuration resolves names, not DNS, since a lab has none.
//! Closed connections and their bytes are counted from its log, open ones from the kernel's counters (`ss`),
//! since services keep connections to a database open.

use crate::Result;
use crate::certificates::write_private;
use crate::container::{ContainerSpec, ContainerUser};
use crate::context::DeploymentContext;
use crate::namespace::Namespace;
use crate::pod::Pod;
use crate::private_dir::PrivateDir;
use crate::redirect::PROXY_USER;
use crate::running::{CounterSource, Proxy};
use crate::sandbox::search_path::find_program;
use components::answer_within;
use experiment::environment::EnvironmentError;
use mesh::admin::{AdminCause, AdminError};
use mesh::istio::objects::egress::{EXTERNAL_HOST, SNI_PROXY_PORT};
use mesh::proof::{Count, Demand, Evidence, ProtocolCounters, Seen, SideCounters, StreamCounters};
use results::HopProtocol;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

pub const NAME: &str = "sni-proxy";

/// nginx takes some 20 ms to start.
const READY_TIMEOUT: Duration = Duration::from_secs(20);
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);

/// `worker_connections`: two per client connection, enough for the number of clients that experiments have.
const WORKER_CONNECTIONS: usize = 8192;
const HINT: &str = "install nginx with its stream module, and iproute2; on Debian and Ubuntu: apt-get install nginx-light \
    libnginx-mod-stream iproute2";

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Nginx {
    program: PathBuf,
    /// nginx's stream module, if it is a separate file.
    stream_module: Option<PathBuf>,
    /// `ss`, which prints the kernel's counters of open connections.
    ss: PathBuf,
}

pub fn find() -> Result<Nginx> {
    let operation = "find nginx, the SNI proxy";
    let missing = |reason: String| EnvironmentError::new(operation, reason).with_hint(HINT);
    let program = find_program("nginx").ok_or_else(|| missing("there is none on the path".to_owned()))?;
    let ss = find_program("ss")
        .ok_or_else(|| missing("there is no ss on the path, which counts its bytes".to_owned()))?;
    let output = answer_within(Command::new(&program).arg("-V"), VERSION_TIMEOUT).map_err(|reason| {
        missing(format!("{} does not say how it was built: {reason}", program.display()))
    })?;
    // nginx prints it on standard error.
    let built = String::from_utf8_lossy(&output.stderr).into_owned();
    let stream_module = stream_module(&built, |file| file.is_file())
        .map_err(|reason| missing(format!("{} {reason}", program.display())))?;
    Ok(Nginx { program, stream_module, ss })
}

/// The stream module's file according to `nginx -V`, or `None` if it is built in. The error says what is
/// missing.
fn stream_module(built: &str, is_file: impl Fn(&Path) -> bool) -> Result<Option<PathBuf>, String> {
    let option = |name: &str| built.split_whitespace().find_map(|word| word.strip_prefix(name));
    if option("--with-stream_ssl_preread_module").is_none() {
        return Err("was built without `--with-stream_ssl_preread_module`".to_owned());
    }
    if built.split_whitespace().any(|word| word == "--with-stream") {
        return Ok(None);
    }
    let folder = option("--modules-path=").unwrap_or("/usr/lib/nginx/modules");
    let module = Path::new(folder).join("ngx_stream_module.so");
    if is_file(&module) {
        Ok(Some(module))
    } else {
        Err(format!("lacks its stream module, {}", module.display()))
    }
}

pub fn start(context: &DeploymentContext<'_>, pod: &mut Pod, destination: SocketAddrV4) -> Result<Proxy> {
    let nginx = find()?;
    let directory = format!("mesh-{}-{NAME}", context.number);
    let files = PrivateDir::create(context.lab, &directory, ContainerUser::Proxy)?;
    let configuration = files.path().join("nginx.conf");
    let log = files.path().join("connections.log");
    let content = configuration_file(&nginx, context.spec.proxy.workers, &log, destination);
    write_private(&configuration, content.as_bytes(), Some(PROXY_USER))?;
    let arguments =
        ["-e", "stderr", "-p", &files.path().to_string_lossy(), "-c", &configuration.to_string_lossy()];
    let container = pod.start(&ContainerSpec {
        arguments: arguments.map(Into::into).to_vec(),
        ..context.proxy_container(NAME, &nginx.program)
    })?;
    pod.wait_until_listening(&container, SNI_PROXY_PORT, READY_TIMEOUT)?;
    let counters = Connections { log, ss: nginx.ss, namespace: Arc::clone(pod.namespace()) };
    Ok(Proxy::new(NAME, pod, container, Box::new(counters), files))
}

/// Forwards only names of the table. A connection for any other name is closed and counts as rejected.
fn configuration_file(nginx: &Nginx, workers: usize, log: &Path, destination: SocketAddrV4) -> String {
    let module = nginx.stream_module.as_ref();
    let module = module.map_or_else(String::new, |file| format!("load_module {};\n", file.display()));
    let log = log.display();
    format!(
        "{module}daemon off;
worker_processes {workers};
pid nginx.pid;
error_log stderr warn;
events {{ worker_connections {WORKER_CONNECTIONS}; }}
stream {{
    log_format connection '$status $bytes_received $bytes_sent $remote_port';
    access_log {log} connection;
    map $ssl_preread_server_name $destination {{
        {EXTERNAL_HOST} {destination};
    }}
    server {{
        listen 127.0.0.1:{SNI_PROXY_PORT} reuseport;
        ssl_preread on;
        tcp_nodelay on;
        proxy_pass $destination;
    }}
}}
"
    )
}

const CONNECTIONS: &str = "connections";
const REFUSED: &str = "connections_refused";
const RECEIVED_BYTES: &str = "bytes_received";
const SENT_BYTES: &str = "bytes_sent";

pub fn evidence() -> Evidence {
    let seen = StreamCounters {
        connections: CONNECTIONS.to_owned(),
        received_bytes: RECEIVED_BYTES.to_owned(),
        sent_bytes: SENT_BYTES.to_owned(),
    };
    let carried = SideCounters {
        expected: Some(HopProtocol::Tcp),
        counters: vec![(HopProtocol::Tcp, Count::Connections(CONNECTIONS.to_owned()))],
        hbone: None,
    };
    let protocols = ProtocolCounters { received: carried.clone(), forwarded: carried, grpc: None };
    let demand = Demand {
        counter: REFUSED.to_owned(),
        rises: false,
        otherwise: "ended connections that it could lead nowhere",
    };
    Evidence { demands: vec![demand], protocols, ..Evidence::new(Seen::Streams(seen)) }
}

#[derive(Debug)]
struct Connections {
    log: PathBuf,
    ss: PathBuf,
    namespace: Arc<Namespace>,
}

impl CounterSource for Connections {
    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError> {
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |error| AdminError { proxy: NAME.to_owned(), path, cause: AdminCause::Log(error) }
        };
        let read_log = || fs::read_to_string(&self.log).map_err(failed(&self.log));
        let ended_before = read_log()?.len();
        let open = self.open_connections().map_err(failed(&self.ss))?;
        let ended = read_log()?;
        let mut counters = count(&ended);
        count_open(&open, &ended[ended_before..], &mut counters);
        Ok(counters)
    }
}

impl Connections {
    fn open_connections(&self) -> io::Result<String> {
        let mut ss = Command::new(&self.ss);
        ss.args(["-t", "-i", "-n", "-H", "state", "established", &format!("sport = :{SNI_PROXY_PORT}")]);
        let run = move || answer_within(&mut ss, VERSION_TIMEOUT).map_err(|reason| reason.to_string());
        let output = self.namespace.run(run).map_err(io::Error::other)?.map_err(io::Error::other)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Adds the output of `ss`: a line per connection, and an indented line with its byte counts. The log has
/// those that closed meanwhile.
fn count_open(shown: &str, ended_meanwhile: &str, counters: &mut BTreeMap<String, u64>) {
    let mut add = |name: &str, amount: u64| *counters.entry(name.to_owned()).or_default() += amount;
    let port = |line: &'_ str| line.rsplit([' ', ':']).next().map(str::to_owned);
    let ended: Vec<_> = ended_meanwhile.lines().map(port).collect();
    let mut has_ended = false;
    for line in shown.lines() {
        if !line.starts_with(char::is_whitespace) {
            has_ended = ended.contains(&port(line.trim_end()));
            add(CONNECTIONS, u64::from(!has_ended));
        }
        if has_ended {
            continue;
        }
        for (name, value) in line.split_whitespace().filter_map(|word| word.split_once(':')) {
            if name == RECEIVED_BYTES || name == SENT_BYTES {
                add(name, value.parse().unwrap_or(0));
            }
        }
    }
}

/// Counters from the lines of a log. A line that is still being written counts the next time.
fn count(log: &str) -> BTreeMap<String, u64> {
    let mut counters: BTreeMap<String, u64> =
        [CONNECTIONS, REFUSED, RECEIVED_BYTES, SENT_BYTES].map(|name| (name.to_owned(), 0)).into();
    let mut add = |name: &str, amount: u64| *counters.entry(name.to_owned()).or_default() += amount;
    for line in log.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let mut fields = line.split(' ');
        let is_led_on = fields.next() == Some("200");
        add(if is_led_on { CONNECTIONS } else { REFUSED }, 1);
        for name in [RECEIVED_BYTES, SENT_BYTES] {
            add(name, fields.next().and_then(|bytes| bytes.parse().ok()).unwrap_or(0));
        }
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = "nginx version: nginx/1.22.1\nconfigure arguments: --prefix=/usr/share/nginx \
        --modules-path=/usr/lib/nginx/modules --with-stream=dynamic --with-stream_ssl_preread_module";

    #[test]
    fn stream_module_is_file_or_built_in_or_missing() {
        let module = stream_module(DEBIAN, |_| true).unwrap().unwrap();
        assert_eq!(module, Path::new("/usr/lib/nginx/modules/ngx_stream_module.so"));
        assert!(stream_module(DEBIAN, |_| false).unwrap_err().starts_with("lacks its stream module"));
        let built_in = DEBIAN.replace("--with-stream=dynamic", "--with-stream");
        assert_eq!(stream_module(&built_in, |_| false), Ok(None));
        let without = DEBIAN.replace("--with-stream_ssl_preread_module", "");
        assert!(stream_module(&without, |_| true).unwrap_err().contains("ssl_preread"));
    }

    #[test]
    fn open_connections_add_to_ended_ones() {
        let mut counters = count("200 100 1000 41232\n");
        let shown = "0 0 127.0.0.1:18443 127.0.0.1:41234\n\t cubic rto:201 bytes_sent:7 bytes_acked:7 bytes_received:30 segs_out:4\n\
            0 0 127.0.0.1:18443 127.0.0.1:41236\n\t cubic rto:201\n";
        let all = |counters: &BTreeMap<String, u64>| {
            [CONNECTIONS, RECEIVED_BYTES, SENT_BYTES].map(|name| counters[name])
        };
        count_open(shown, "", &mut counters);
        assert_eq!(all(&counters), [3, 130, 1007]);
        // A connection that closes while `ss` runs is in the log too.
        let ended = "200 30 7 41234\n";
        let mut counters = count(ended);
        count_open(shown, ended, &mut counters);
        assert_eq!(all(&counters), [2, 30, 7]);
    }

    #[test]
    fn log_is_counted_by_complete_lines() {
        let counters = count("200 48095 351386 1\n500 517 0 2\n200 48677 355635 3\n200 1");
        let expected = [
            ("connections", 2),
            ("connections_refused", 1),
            ("bytes_received", 97_289),
            ("bytes_sent", 707_021),
        ];
        assert_eq!(counters, expected.map(|(name, count)| (name.to_owned(), count)).into());
    }
}
