//! nginx as the server to beat, or to be loaded: one worker that answers `return 200` with a body of 1 KB.

use super::process::{Place, pinned, until};
use super::server::Server;
use super::{BODY_BYTES, Outcome};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;

/// Starts it, with its files in `folder`, and waits until it answers.
///
/// # Errors
/// Where it does not start: the text has its log.
pub fn start(folder: &Path) -> Outcome<Server> {
    // nginx cannot choose ports itself.
    let listeners = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    let [port, http2_port] = [listeners[0].local_addr()?.port(), listeners[1].local_addr()?.port()];
    drop(listeners);
    let configuration_path = folder.join("nginx.conf");
    fs::write(&configuration_path, configuration(folder, port, http2_port))?;
    let mut command = pinned(Place::Server, Path::new("nginx"))?;
    command.arg("-e").arg(folder.join("error.log")).arg("-c").arg(&configuration_path);
    let mut server = Server::start(&mut command)?;
    server.url = format!("http://127.0.0.1:{port}/");
    server.http2_url = format!("http://127.0.0.1:{http2_port}/");
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

fn configuration(folder: &Path, port: u16, http2_port: u16) -> String {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {}/{kind};\n", folder.display()))
        .concat();
    format!(
        "worker_processes 1;\ndaemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n{temporary}access_log off;\nkeepalive_requests 1000000000;\n\
         server {{ listen 127.0.0.1:{port}; listen 127.0.0.1:{http2_port} http2; \
         location / {{ return 200 \"{body}\"; }} }}\n}}\n",
        folder = folder.display(),
        body = "x".repeat(BODY_BYTES),
    )
}
