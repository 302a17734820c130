//! The namespaces of a deployment in the mesh: its objects, and the names that resolve in its pods.
//!
//! Each deployment has namespaces of its own, so that nothing left from the previous one can be taken for its
//! configuration. Names resolve through hosts files, one per namespace, which replace the machine's own in
//! the pods. They list the Services that the pods call, as a cluster's DNS would resolve them. The resolver
//! file next to it names no usable server, so that any other name fails at once instead of being looked up
//! outside the lab.

use super::control_plane::ControlPlane;
use crate::Result;
use crate::container::ContainerUser;
use crate::lab::Lab;
use crate::pod::NameFiles;
use crate::private_dir::PrivateDir;
use experiment::environment::ErrorContext;
use mesh::kubernetes::object_set::ObjectSet;
use mesh::names::{DISCOVERY_NAME, service_host};
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

/// The namespaces of a deployment. Dropping this deletes their objects.
#[derive(Debug)]
pub struct MeshNamespaces {
    names: Vec<String>,
    directories: Vec<PrivateDir>,
    /// Objects of the deployment in any namespace.
    pub objects: ObjectSet,
}

impl MeshNamespaces {
    /// Creates `mesh-N` with the deployment's number, or `mesh-N-NAME` per named namespace of the topology.
    pub fn create(
        lab: &Lab,
        control_plane: &ControlPlane,
        number: usize,
        in_topology: &[&str],
        labels: &[(&str, &str)],
    ) -> Result<Self> {
        let name = |name: &&str| {
            if name.is_empty() { format!("mesh-{number}") } else { format!("mesh-{number}-{name}") }
        };
        let names: Vec<String> = in_topology.iter().map(name).collect();
        let istiod = control_plane.discovery().ip().to_string();
        let head =
            format!("127.0.0.1\tlocalhost\n{istiod}\t{DISCOVERY_NAME} {DISCOVERY_NAME}.cluster.local\n");
        let mut directories = Vec::with_capacity(names.len());
        for name in &names {
            let directory = PrivateDir::create(lab, name, ContainerUser::Lab)?;
            write_public(&directory.path().join("hosts"), &head)?;
            write_public(
                &directory.path().join("resolv.conf"),
                "nameserver 127.0.0.1\noptions attempts:1 timeout:1\n",
            )?;
            directories.push(directory);
        }
        let mut objects = ObjectSet::new(Arc::clone(control_plane.api()));
        objects.create_namespaces(&names.iter().map(String::as_str).collect::<Vec<_>>(), labels)?;
        Ok(Self { names, directories, objects })
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn name_files(&self, namespace: usize) -> NameFiles {
        let directory = self.directories[namespace].path();
        NameFiles { hosts: directory.join("hosts"), resolver: directory.join("resolv.conf") }
    }

    /// Makes names resolve in the pods of a namespace from now on, as the cluster's DNS would.
    pub fn add_name(&self, namespace: usize, address: Ipv4Addr, names: &[&str]) -> Result<()> {
        let path = self.name_files(namespace).hosts;
        // Appended to, never replaced: the pods have this very file mounted.
        let appended = OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(format!("{address}\t{}\n", names.join(" ")).as_bytes()));
        appended.context(format!("write {}", path.display()))
    }

    pub fn add_service_names(
        &self,
        (service, namespace): (&str, usize),
        address: Ipv4Addr,
        caller: usize,
    ) -> Result<()> {
        let name = &self.names[namespace];
        let whole = service_host(service, name);
        let (with_svc, short) = (format!("{service}.{name}.svc"), format!("{service}.{name}"));
        let mut names = vec![whole.as_str(), &with_svc, &short];
        if caller == namespace {
            names.push(service);
        }
        self.add_name(caller, address, &names)
    }
}

/// Writes a file that every process of a pod may read.
fn write_public(path: &Path, content: &str) -> Result<()> {
    fs::write(path, content)
        .and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o644)))
        .context(format!("write {}", path.display()))
}
