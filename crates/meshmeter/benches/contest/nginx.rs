//! nginx as the server to beat, or to be loaded: one worker that responds with `return 200` and a body of 1
//! KB.

use super::process::{Place, pinned, until};
use super::server::Server;
use super::{BODY_BYTES, Outcome};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;

/// Starts nginx with its files in `folder`, and waits until it responds.
///
/// # Errors
/// Returns an error with its log if it does not start.
pub fn start(folder: &Path) -> Outcome<Server> {
    let [port, http2_port, tls_port, noted_port] = free_ports()?;
    let identity = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    fs::write(folder.join("certificate.pem"), identity.cert.pem())?;
    fs::write(folder.join("key.pem"), identity.signing_key.serialize_pem())?;
    let configuration_path = folder.join("nginx.conf");
    fs::write(&configuration_path, configuration(folder, port, http2_port, tls_port, noted_port))?;
    let mut command = pinned(Place::Server, Path::new("nginx"))?;
    command.arg("-e").arg(folder.join("error.log")).arg("-c").arg(&configuration_path);
    let mut server = Server::start(&mut command)?;
    server.url = format!("http://127.0.0.1:{port}/");
    server.http2_url = format!("http://127.0.0.1:{http2_port}/");
    server.tls_url = format!("https://127.0.0.1:{tls_port}/");
    server.noted_url = format!("http://127.0.0.1:{noted_port}/");
    server.notes = folder.join("connections");
    let master = server.child.id();
    let worker = until(|| {
        TcpStream::connect(("127.0.0.1", port)).ok()?;
        let children = fs::read_to_string(format!("/proc/{master}/task/{master}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    });
    server.worker = worker.ok_or_else(|| {
        let log = fs::read_to_string(folder.join("error.log")).unwrap_or_default();
        format!("nginx did not start: is it installed? {log}")
    })?;
    Ok(server)
}

/// Ports that were free a moment ago: nginx cannot choose any itself.
fn free_ports() -> Outcome<[u16; 4]> {
    let mut listeners = Vec::new();
    let mut ports = [0; 4];
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

/// Requests to the last port are logged, one line each, with the number of their connection. TLS sessions are
/// not resumed, neither by ticket nor by ID: wrk would resume all of its own, and would do less work than a
/// handshake per request.
fn configuration(folder: &Path, port: u16, http2_port: u16, tls_port: u16, noted_port: u16) -> String {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {}/{kind};\n", folder.display()))
        .concat();
    format!(
        "worker_processes 1;\ndaemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\n\
         worker_rlimit_nofile 16384;\nevents {{ worker_connections 16000; }}\n\
         http {{\n{temporary}access_log off;\nkeepalive_requests 1000000000;\n\
         ssl_certificate {folder}/certificate.pem; ssl_certificate_key {folder}/key.pem;\n\
         ssl_session_tickets off; ssl_session_cache off;\n\
         log_format connection $connection;\n\
         server {{ listen 127.0.0.1:{port}; listen 127.0.0.1:{http2_port} http2; listen 127.0.0.1:{tls_port} ssl; \
         location / {{ return 200 \"{body}\"; }} }}\n\
         server {{ listen 127.0.0.1:{noted_port} backlog=4096; \
         access_log {folder}/connections connection buffer=64k flush=200ms; \
         location / {{ return 200 \"{body}\"; }} }}\n}}\n",
        folder = folder.display(),
        body = "x".repeat(BODY_BYTES),
    )
}
