//! Single requests to the service of a deployment, and what its proxies expose: what a user with `curl` would
//! see.

use lab::Pod;
use lab::deployment::LabDeployment;
use lab::environment::LocalLab;
use mesh::istio::objects::{ingress, waypoint};
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::names::ADMIN_PORT;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::time::Duration;

/// An HTTP/1.1 response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    /// Values of a header, one per occurrence.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str()).collect()
    }
}

/// Address and Host header of a request.
#[derive(Clone, Debug)]
pub struct Target {
    pub address: SocketAddrV4,
    pub host: String,
}

impl Target {
    /// Target of the generator: the Service, or the ingress gateway, which must accept plaintext HTTP.
    pub fn of_client(lab: &LocalLab, deployment: &LabDeployment<'_>) -> Self {
        let gateway = deployment.pods().into_iter().find(|pod| pod.name() == ingress::NAME);
        match gateway {
            Some(pod) => Self {
                address: SocketAddrV4::new(pod.address(), ingress::PORT),
                host: ingress::HOST.to_owned(),
            },
            None => Self::service(lab, deployment),
        }
    }

    /// The Service, for any caller.
    pub fn service(lab: &LocalLab, deployment: &LabDeployment<'_>) -> Self {
        let namespace = namespace(deployment);
        let control_plane = lab.running_control_plane().expect("it configured the proxies");
        let service = ObjectRef::new("v1", "Service", Some(&namespace), "server");
        let service = control_plane.api().get(&service).expect("the API answers").expect("it is there");
        let address: Ipv4Addr = service["spec"]["clusterIP"].as_str().unwrap().parse().unwrap();
        let host = format!("server.{namespace}.svc.cluster.local");
        Self { address: SocketAddrV4::new(address, 8080), host }
    }

    /// The server's pod itself.
    pub fn server_pod(deployment: &LabDeployment<'_>) -> Self {
        let address = SocketAddrV4::new(deployment.server_pod().address(), 8080);
        Self { address, host: "server".to_owned() }
    }

    /// Sends a GET from a pod.
    pub fn get(&self, from: &Pod, path: &str, headers: &[(&str, &str)]) -> io::Result<Answer> {
        let (address, request) = (self.address, self.request(path, headers));
        from.run(move || exchange(address, &request)).expect("the pod is there")
    }

    /// Sends a GET from outside all pods, as from another machine.
    pub fn get_from_outside(&self, path: &str) -> io::Result<Answer> {
        exchange(self.address, &self.request(path, &[]))
    }

    fn request(&self, path: &str, headers: &[(&str, &str)]) -> String {
        let mut request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.host);
        for (name, value) in headers {
            write!(request, "{name}: {value}\r\n").expect("a String takes everything");
        }
        request + "\r\n"
    }
}

fn exchange(address: SocketAddrV4, request: &str) -> io::Result<Answer> {
    let limit = Duration::from_secs(60);
    let mut stream = TcpStream::connect_timeout(&address.into(), limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let headers = lines.filter_map(|line| line.split_once(": "));
    Ok(Answer {
        status: status.ok_or(io::ErrorKind::InvalidData)?,
        headers: headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect(),
        body: body.to_owned(),
    })
}

/// Namespace of a trial: that of the requested Service, or else from the node name of the server's Envoy
/// (`sidecar~address~pod.namespace~…`).
pub fn namespace(deployment: &LabDeployment<'_>) -> String {
    let url = deployment.url();
    if let Some((before, _)) = url.split_once(".svc.cluster.local") {
        return before.rsplit('.').next().expect("a name has parts").to_owned();
    }
    let information = ask(deployment.server_pod(), "/server_info");
    let name = information.split("sidecar~").nth(1).and_then(|name| name.split('~').nth(1));
    let (_, namespace) = name.and_then(|name| name.split_once('.')).expect("Envoy's name has its namespace");
    namespace.to_owned()
}

/// Pod of the proxy that checks requests to the service: the service's own, or the waypoint's.
pub fn before_service<'a>(deployment: &'a LabDeployment<'_>) -> &'a Pod {
    let waypoint = deployment.pods().into_iter().find(|pod| pod.name() == waypoint::NAME);
    waypoint.unwrap_or_else(|| deployment.server_pod())
}

/// Queries the admin interface of a pod's Envoy.
pub fn ask(pod: &Pod, path: &str) -> String {
    let answer = pod.admin(pod.name(), ADMIN_PORT).ask(path).expect("Envoy answers");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Like [`ask`], parsed as JSON.
pub fn get_json(pod: &Pod, path: &str) -> Value {
    serde_json::from_str(&ask(pod, path)).expect("Envoy answers in JSON")
}
