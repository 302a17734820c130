//! One trial's namespace of the mesh: its objects, and the names that its pods find.
//!
//! Each trial has a namespace of its own, so that nothing of the one before can be taken for its configuration.
//!
//! Names resolve by a hosts file that the pods see in place of the machine's own: it lists the Services of the trial as a
//! cluster's DNS would answer for them. A resolver file beside it names nobody to ask, so that any other name fails at
//! once instead of being looked for outside the lab.

use super::control_plane::ControlPlane;
use crate::arrangement::started::PrivateFolder;
use crate::container::ContainerUser;
use crate::lab::Lab;
use crate::pod::NameFiles;
use experiment::environment::EnvironmentError;
use mesh::kubernetes::object_set::ObjectSet;
use mesh::names::{DISCOVERY_NAME, service_host};
use serde_json::Value;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// A namespace of the mesh. Dropping it deletes its objects.
#[derive(Debug)]
pub struct MeshNamespace {
    name: String,
    objects: ObjectSet,
    control_plane: Rc<ControlPlane>,
    folder: PrivateFolder,
}

impl MeshNamespace {
    /// Makes the namespace with this number within the lab, with these labels.
    ///
    /// # Errors
    /// Where its files or the namespace itself cannot be made.
    pub fn create(
        lab: &Lab,
        control_plane: Rc<ControlPlane>,
        number: usize,
        labels: &[(&str, &str)],
    ) -> Result<Self, EnvironmentError> {
        let name = format!("mesh-{number}");
        let folder = PrivateFolder(lab.create_private_dir(&name, ContainerUser::Lab)?);
        write_public(&folder.path().join("hosts"), &hosts_head(control_plane.address()))?;
        write_public(
            &folder.path().join("resolv.conf"),
            "nameserver 127.0.0.1\noptions attempts:1 timeout:1\n",
        )?;
        let mut objects = ObjectSet::new(Arc::clone(control_plane.api()));
        objects.create_namespaces(&[&name], labels)?;
        Ok(Self { name, objects, control_plane, folder })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The control plane that it belongs to.
    #[must_use]
    pub fn control_plane(&self) -> &Rc<ControlPlane> {
        &self.control_plane
    }

    /// The whole name of one of its Services.
    #[must_use]
    pub fn host_of(&self, service: &str) -> String {
        service_host(service, &self.name)
    }

    /// The files by which names resolve in its pods.
    #[must_use]
    pub fn name_files(&self) -> NameFiles {
        NameFiles {
            hosts: self.folder.path().join("hosts"),
            resolver: self.folder.path().join("resolv.conf"),
        }
    }

    /// Objects that are deleted with the namespace, whichever namespace they are in themselves.
    pub fn objects(&mut self) -> &mut ObjectSet {
        &mut self.objects
    }

    /// Writes objects and returns them as the API has them.
    ///
    /// # Errors
    /// Those of [`ObjectSet::apply`].
    pub fn apply(&mut self, objects: &[Value]) -> Result<Vec<Value>, EnvironmentError> {
        self.objects.apply(objects)
    }

    /// Lets a name resolve in the pods of this namespace from now on, as the cluster's DNS would.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn add_name(&self, address: Ipv4Addr, names: &[&str]) -> Result<(), EnvironmentError> {
        let path = self.folder.path().join("hosts");
        // Appended to, never replaced: the pods have this very file.
        let appended = OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(format!("{address}\t{}\n", names.join(" ")).as_bytes()));
        appended.map_err(|error| EnvironmentError::new(format!("write {}", path.display()), error))
    }

    /// Lets a Service's names resolve, as they do in any namespace of a cluster.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn add_service_names(&self, address: Ipv4Addr, service: &str) -> Result<(), EnvironmentError> {
        let (whole, with_svc, short) = (
            self.host_of(service),
            format!("{service}.{}.svc", self.name),
            format!("{service}.{}", self.name),
        );
        self.add_name(address, &[&whole, &with_svc, &short, service])
    }
}

fn hosts_head(control_plane: Ipv4Addr) -> String {
    format!("127.0.0.1\tlocalhost\n{control_plane}\t{DISCOVERY_NAME} {DISCOVERY_NAME}.cluster.local\n")
}

/// Writes a file that every process of a pod may read.
fn write_public(path: &Path, content: &str) -> Result<(), EnvironmentError> {
    fs::write(path, content)
        .and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o644)))
        .map_err(|error| EnvironmentError::new(format!("write {}", path.display()), error))
}
