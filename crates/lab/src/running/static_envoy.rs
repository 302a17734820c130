//! One Envoy with a static file in a pod: its private directory, its process, its readiness.

use super::proxy::Proxy;
use crate::Result;
use crate::certificates::{CredentialFiles, write_private};
use crate::container::{Confined, ContainerSpec, ContainerUser};
use crate::context::DeploymentContext;
use crate::pod::Pod;
use crate::private_dir::PrivateDir;
use crate::redirect::{PROXY_MARK, PROXY_USER, ProxyIdentity};
use components::Installed;
use experiment::environment::{EnvironmentError, ErrorContext};
use mesh::admin::Admin;
use mesh::admin::dial::UnixSocket;
use mesh::envoy::bootstrap::{Position, ProxyConfiguration, configuration};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Unix socket addresses hold 108 bytes including the terminating zero (unix(7)).
const MAX_SOCKET_PATH_BYTES: usize = 107;

#[derive(Clone, Copy, Debug)]
pub(crate) struct StaticEnvoyFactory<'a> {
    pub context: &'a DeploymentContext<'a>,
    pub envoy: &'a Installed,
}

impl StaticEnvoyFactory<'_> {
    /// Starts a proxy. A sidecar gets the identity of its workload. `certificates` is a directory that the
    /// position's files are in.
    pub fn start(
        &self,
        pod: &mut Pod,
        name: &str,
        position: Position,
        identity: Option<&str>,
        certificates: Option<&Path>,
    ) -> Result<Proxy> {
        let DeploymentContext { lab, spec, number, .. } = self.context;
        let files = PrivateDir::create(lab, &format!("t{number}-{name}"), ContainerUser::Proxy)?;
        let admin_socket = admin_socket(files.path())?;
        let file = files.path().join("envoy.json");
        let resources = match position {
            Position::Gateway { .. } => self.context.gateway_resources(),
            Position::Sidecar { .. } => self.context.proxy_resources(),
        };
        let content = configuration(&ProxyConfiguration {
            name: name.to_owned(),
            position,
            credentials: self.credentials(identity, files.path())?,
            access_log: spec.proxy.access_log,
            cpu_time: spec.proxy.cpu_time,
            socket_mark: (lab.proxy_identity() == ProxyIdentity::Mark).then_some(PROXY_MARK),
            admin_socket: admin_socket.clone(),
        });
        write_private(&file, content.to_string().as_bytes(), self.owner())?;
        let workers = resources.workers.to_string();
        // No hot restart: it would share memory between the proxies of one machine.
        let options =
            ["--disable-hot-restart", "--log-level", "warning", "--concurrency", &workers, "--config-path"];
        let arguments = options.map(OsString::from).into_iter().chain([file.into()]);
        let exposed = lab.exposed_files_dir()?;
        let readable = certificates.into_iter().chain([exposed.as_path()]);
        let confined = Confined::for_programs(&[self.envoy])
            .map(|confined| confined.writing(files.path()).reading(readable));
        let container = pod.start(&ContainerSpec {
            arguments: arguments.collect(),
            confined,
            limits: resources.limits,
            ..self.context.proxy_container(name, &self.envoy.path)
        })?;
        Ok(Proxy::new(name, pod, container, Box::new(Admin::new(name, UnixSocket(admin_socket))), files))
    }

    /// User that owns a proxy's files, if it is not ours.
    pub fn owner(&self) -> Option<u32> {
        (self.context.lab.proxy_identity() == ProxyIdentity::Uid).then_some(PROXY_USER)
    }

    fn credentials(&self, identity: Option<&str>, folder: &Path) -> Result<Option<CredentialFiles>> {
        let Some(identity) = identity.filter(|_| self.context.spec.proxy.mtls.is_spoken()) else {
            return Ok(None);
        };
        let credentials = self.context.authority.issue(identity);
        let written = credentials
            .and_then(|credentials| credentials.write(&folder.join("credentials"), self.owner()))
            .context(format!("give {identity} its certificate"))?;
        Ok(Some(written))
    }
}

fn admin_socket(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("admin");
    let length = path.as_os_str().len();
    if length > MAX_SOCKET_PATH_BYTES {
        let reason = format!("{length} bytes are too long for a socket's path: {}", path.display());
        return Err(EnvironmentError::new("make a proxy's admin socket", reason));
    }
    Ok(path)
}
