//! Ports of pods on the loopback of this machine, like `kubectl port-forward`. The path leads through the API
//! and the kubelet into the pod, so it reaches ports on the pod's loopback, and bypasses a mesh's redirection.

use super::client::ApiClient;
use super::request::reason;
use crate::Result;
use crate::admin::Admin;
use crate::admin::dial::TcpPort;
use experiment::environment::ErrorContext as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// A forwarded port of a pod. Dropping it closes the listener.
#[derive(Debug)]
pub struct PortForward {
    address: SocketAddr,
    task: AbortHandle,
    last_error: Arc<Mutex<Option<String>>>,
}

impl Drop for PortForward {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PortForward {
    /// Address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
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

impl ApiClient {
    /// Listens for connections to forward to a port of a pod.
    pub fn forward(&self, namespace: &str, pod: &str, port: u16) -> Result<PortForward> {
        let operation = || format!("forward port {port} of pod {namespace}/{pod}");
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context(operation())?;
        listener.set_nonblocking(true).context(operation())?;
        let address = listener.local_addr().context(operation())?;
        let pods: Api<Pod> = Api::namespaced(self.client().clone(), namespace);
        let last_error = Arc::new(Mutex::new(None));
        let (errors, pod) = (Arc::clone(&last_error), pod.to_owned());
        let task = self.runtime().spawn(async move {
            let note = |error: Option<String>| {
                *errors.lock().unwrap_or_else(PoisonError::into_inner) = error;
            };
            let listener = match TcpListener::from_std(listener) {
                Ok(listener) => listener,
                Err(error) => return note(Some(error.to_string())),
            };
            // A connection that cannot be accepted is already gone.
            while let Ok((stream, _)) = listener.accept().await {
                let (pods, pod, errors) = (pods.clone(), pod.clone(), Arc::clone(&errors));
                tokio::spawn(async move {
                    let carried = carry(&pods, &pod, port, stream).await;
                    *errors.lock().unwrap_or_else(PoisonError::into_inner) = carried.err();
                });
            }
        });
        Ok(PortForward { address, task: task.abort_handle(), last_error })
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
