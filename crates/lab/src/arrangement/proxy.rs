//! One Envoy with a static file in a pod: its private folder, its process, its readiness.

use super::started::{Pods, PrivateFolder, Proxy};
use super::static_envoys::pod_of;
use crate::certificates::{RunAuthority, spiffe_identity, write_private};
use crate::components::Installed;
use crate::container::{Container, ContainerSpec, ContainerUser, ErrorOutput};
use crate::envoy::admin::Admin;
use crate::envoy::bootstrap::{MutualTls, Position, ProxyConfiguration, configuration};
use crate::lab::Lab;
use crate::pod::Pod;
use crate::redirect::{PROXY_MARK, PROXY_USER, ProxyIdentity};
use crate::wait::wait_for;
use experiment::Protocol;
use experiment::environment::{EnvironmentError, ProxySettings};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A proxy starts in well under a second; more on a machine that is busy with other things.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// Socket addresses of the Unix domain hold 108 bytes, the last of them zero (unix(7)).
const LONGEST_SOCKET_PATH: usize = 107;

/// What every proxy of an arrangement has in common.
pub(super) struct ProxyFactory<'a> {
    pub envoy: &'a Installed,
    pub settings: &'a ProxySettings,
    pub protocol: Protocol,
    pub authority: &'a RunAuthority,
    pub lab: &'a Lab,
    /// Keeps the private folders of one arrangement's proxies apart from the next one's.
    pub arrangement: usize,
    pub log_dir: &'a Path,
}

/// A proxy and its place.
#[derive(Clone, Debug)]
pub(super) struct ProxySpec {
    pub name: &'static str,
    pub position: Position,
}

/// A proxy that was started and need not be ready yet.
#[derive(Debug)]
pub(super) struct StaticProxy {
    name: &'static str,
    pub position: Position,
    protocol: Protocol,
    tls_expected: bool,
    container: Container,
    admin: Admin,
    /// Its configuration, keys and admin socket.
    files: PrivateFolder,
}

impl ProxyFactory<'_> {
    /// Starts a proxy in this pod. It need not be ready yet.
    pub fn start(&self, pod: &mut Pod, spec: &ProxySpec) -> Result<StaticProxy, EnvironmentError> {
        let name = format!("t{}-{}", self.arrangement, spec.name);
        let files = PrivateFolder(self.lab.create_private_dir(&name, ContainerUser::Proxy)?);
        let folder = files.path();
        let admin_socket = admin_socket(folder)?;
        let mutual_tls = self.mutual_tls(spec.position, folder)?;
        let tls_expected = mutual_tls.is_some();
        let file = folder.join("envoy.json");
        let content = configuration(&ProxyConfiguration {
            name: spec.name.to_owned(),
            position: spec.position,
            protocol: self.protocol,
            mutual_tls,
            access_log: self.settings.access_log,
            socket_mark: (self.lab.proxy_identity() == ProxyIdentity::Mark).then_some(PROXY_MARK),
            admin_socket: admin_socket.clone(),
        });
        write_private(&file, content.to_string().as_bytes(), self.owner())
            .map_err(|error| EnvironmentError::new(format!("write {}", file.display()), error))?;
        let container = pod.start(&self.container(spec.name, &file))?;
        let admin = Admin::new(spec.name, mesh::admin::dial::UnixSocket(admin_socket));
        Ok(StaticProxy {
            name: spec.name,
            position: spec.position,
            protocol: self.protocol,
            tls_expected,
            container,
            admin,
            files,
        })
    }

    /// The user who is to own a proxy's files, where it is another than ours.
    fn owner(&self) -> Option<u32> {
        (self.lab.proxy_identity() == ProxyIdentity::Uid).then_some(PROXY_USER)
    }

    /// Fresh credentials for a sidecar; a gateway has no peer proxy.
    fn mutual_tls(&self, position: Position, folder: &Path) -> Result<Option<MutualTls>, EnvironmentError> {
        let (own, peer) = match position {
            Position::ClientSidecar { .. } => ("client", "server"),
            Position::ServerSidecar { .. } => ("server", "client"),
            Position::Gateway { .. } => return Ok(None),
        };
        if !self.settings.mtls.is_spoken() {
            return Ok(None);
        }
        let identity = spiffe_identity(own);
        let credentials = self
            .authority
            .issue(&identity)
            .and_then(|credentials| credentials.write(&folder.join("credentials"), self.owner()))
            .map_err(|error| EnvironmentError::new(format!("give {identity} its certificate"), error))?;
        Ok(Some(MutualTls { credentials, peer_identity: spiffe_identity(peer) }))
    }

    fn container(&self, name: &str, configuration: &Path) -> ContainerSpec {
        let workers = self.settings.workers.to_string();
        // No hot restart: it would share memory between the proxies of one machine.
        let mut arguments: Vec<OsString> =
            ["--disable-hot-restart", "--log-level", "warning", "--concurrency", &workers, "--config-path"]
                .map(OsString::from)
                .to_vec();
        arguments.push(configuration.into());
        ContainerSpec {
            name: name.to_owned(),
            program: self.envoy.path.clone(),
            arguments,
            environment: BTreeMap::new(),
            cpu_limit_cores: self.settings.cpu_limit_cores,
            user: ContainerUser::Proxy,
            working_directory: None,
            output_log: self.log_dir.join(format!("{name}.log")),
            error_output: ErrorOutput::WithOutput,
        }
    }
}

fn admin_socket(folder: &Path) -> Result<PathBuf, EnvironmentError> {
    let path = folder.join("admin");
    let length = path.as_os_str().len();
    if length > LONGEST_SOCKET_PATH {
        let reason = format!("{length} bytes are too long for a socket's path: {}", path.display());
        return Err(EnvironmentError::new("make a proxy's admin socket", reason));
    }
    Ok(path)
}

impl StaticProxy {
    /// The proxy as a part of its arrangement.
    pub fn on_the_path(self, pods: &Pods) -> Proxy {
        Proxy {
            name: self.name.to_owned(),
            side: None,
            pod: pod_of(pods, self.position).name().to_owned(),
            container: self.container,
            evidence: self.position.evidence(self.protocol, self.tls_expected),
            spans: None,
            counters: Box::new(self.admin),
            _files: Some(self.files),
        }
    }

    /// Waits until the proxy serves: it says so itself, and its port listens.
    pub fn wait_until_ready(&self, lab: &Lab, pod: &Pod) -> Result<(), EnvironmentError> {
        let what = format!("{} is ready", self.name);
        wait_for(&what, READY_WITHIN, || {
            lab.check_not_stopped()?;
            self.container.check(format!("start {}", self.name))?;
            let ready = self
                .admin
                .ready()
                .map_err(|error| EnvironmentError::new(format!("wait until {what}"), error))?;
            Ok(ready.then_some(()))
        })?;
        pod.wait_until_listening(&self.container, self.position.listening_port(), READY_WITHIN)
    }
}
