//! Ports of pods on the loopback of this machine, like `kubectl port-forward`. The path leads through the API
//! and the kubelet into the pod, so it reaches ports on the pod's loopback, and bypasses a mesh's redirection.

use crate::Result;
use experiment::environment::ErrorContext as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use mesh::admin::Admin;
use mesh::admin::dial::TcpPort;
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::request::reason;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A forwarded port of a pod. Dropping it closes the listener.
#[derive(Debug)]
pub struct PortForward {
    address: SocketAddr,
    /// Ends when it is dropped.
    _task: JoinSet<()>,
    last_error: Arc<Mutex<Option<String>>>,
}

impl PortForward {
    /// Listens for connections to forward to a port of a pod.
    pub fn open(api: &ApiClient, namespace: &str, pod: &str, port: u16) -> Result<Self> {
        let operation = || format!("forward port {port} of pod {namespace}/{pod}");
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context(operation())?;
        listener.set_nonblocking(true).context(operation())?;
        let address = listener.local_addr().context(operation())?;
        let _context = api.runtime().enter();
        let listener = TcpListener::from_std(listener).context(operation())?;
        let pods: Api<Pod> = Api::namespaced(api.client().clone(), namespace);
        let last_error = Arc::new(Mutex::new(None));
        let (errors, pod) = (Arc::clone(&last_error), pod.to_owned());
        let mut task = JoinSet::new();
        task.spawn(async move {
            // A connection that cannot be accepted is already gone.
            while let Ok((stream, _)) = listener.accept().await {
                let (pods, pod, errors) = (pods.clone(), pod.clone(), Arc::clone(&errors));
                tokio::spawn(async move {
                    let carried = carry(&pods, &pod, port, stream).await;
                    *errors.lock().unwrap_or_else(PoisonError::into_inner) = carried.err();
                });
            }
        });
        Ok(Self { address, _task: task, last_error })
    }

    /// HTTP client of this port.
    pub fn admin(&self, component: &str) -> Admin {
        Admin::new(component, TcpPort { authority: self.address.to_string() })
    }

    /// Reason why the last connection could not be forwarded; absent if it could.
    pub fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn carry(pods: &Api<Pod>, pod: &str, port: u16, mut local: TcpStream) -> Result<(), String> {
    let mut forwarder = pods.portforward(pod, &[port]).await.map_err(|error| reason(&error))?;
    let mut remote = forwarder.take_stream(port).ok_or("the API forwards no such port")?;
    let refused = forwarder.take_error(port);
    // Either end may close first, even in mid-transfer; the caller notices that in what it reads.
    let _ = tokio::io::copy_bidirectional(&mut local, &mut remote).await;
    drop(remote);
    forwarder.abort();
    match refused {
        Some(refused) => refused.await.map_or(Ok(()), Err),
        None => Ok(()),
    }
}
