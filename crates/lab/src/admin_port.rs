//! Admin ports on the loopback of a pod.

use crate::namespace::Namespace;
use crate::pod::Pod;
use mesh::admin::dial::{Connection, Dial};
use mesh::admin::{Admin, AdminCause};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

impl Pod {
    /// Opens connections to a port of the pod from inside the pod.
    pub(crate) fn port(&self, port: u16) -> PodPort {
        PodPort { namespace: Arc::clone(self.namespace()), port }
    }

    pub fn admin(&self, component: &str, port: u16) -> Admin {
        Admin::new(component, self.port(port))
    }
}

#[derive(Debug)]
pub(crate) struct PodPort {
    namespace: Arc<Namespace>,
    port: u16,
}

impl Dial for PodPort {
    fn dial(&self, timeout: Duration) -> Result<Connection, AdminCause> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let connected = self.namespace.run(move || TcpStream::connect_timeout(&address, timeout));
        connected
            .map_err(|error| AdminCause::Pod(Box::new(error)))?
            .map(Connection::Tcp)
            .map_err(AdminCause::Connect)
    }

    fn curl_arguments(&self, path: &str) -> Vec<String> {
        vec![format!("http://localhost:{}{path}", self.port)]
    }
}
