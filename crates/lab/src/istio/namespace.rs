//! One trial's namespace of the mesh: its objects, and the names that its pods find.
//!
//! Each trial has a namespace of its own, so that nothing of the one before can be taken for its configuration. Every
//! object is made through here and deleted when the trial ends, since a lab has no controller that would empty it.
//!
//! Names resolve by a hosts file that the pods see in place of the machine's own: it lists the Services of the trial as a
//! cluster's DNS would answer for them. A resolver file beside it names nobody to ask, so that any other name fails at
//! once instead of being looked for outside the lab.

use super::admission;
use super::api::DEFINITION;
use super::control_plane::{ControlPlane, DISCOVERY_NAME, namespace};
use super::object::Reference;
use crate::arrangement::started::PrivateFolder;
use crate::container::ContainerUser;
use crate::lab::Lab;
use crate::pod::NameFiles;
use crate::wait::wait_for;
use experiment::environment::EnvironmentError;
use serde_json::Value;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// The kind of namespaces.
const NAMESPACE_KIND: &str = "Namespace";

/// The API serves a new kind within a second.
const SERVED_WITHIN: Duration = Duration::from_secs(20);

/// What a cluster's names end with.
pub const CLUSTER_DOMAIN: &str = "svc.cluster.local";

/// A namespace of the mesh. Dropping it deletes its objects.
#[derive(Debug)]
pub struct MeshNamespace {
    name: String,
    control_plane: Rc<ControlPlane>,
    objects: Vec<Reference>,
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
        let mut made = Self { name, control_plane, objects: Vec::new(), folder };
        made.apply(&[namespace(&made.name, labels)])?;
        Ok(made)
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
        format!("{service}.{}.{CLUSTER_DOMAIN}", self.name)
    }

    /// The files by which names resolve in its pods.
    #[must_use]
    pub fn name_files(&self) -> NameFiles {
        NameFiles {
            hosts: self.folder.path().join("hosts"),
            resolver: self.folder.path().join("resolv.conf"),
        }
    }

    /// Makes objects, all at once, and gives them as the API has them. They are deleted with the namespace, whichever
    /// namespace they are in themselves.
    ///
    /// # Errors
    /// Where the API refuses one, or one is there already: it would not be what it was when this namespace is dropped.
    pub fn apply(&mut self, objects: &[Value]) -> Result<Vec<Value>, EnvironmentError> {
        let api = self.control_plane.api();
        let mut references = Vec::new();
        for reference in objects.iter().map(Reference::of) {
            let reference = reference?;
            if self.objects.iter().chain(&references).any(|other| other.is_same_as(&reference)) {
                return Err(EnvironmentError::new(
                    format!("apply {reference}"),
                    "the trial has such an object already",
                )
                .with_hint(
                    "objects of `istio.extra` cannot take the place of those that a trial is made of",
                ));
            }
            if !self.holds(&reference) && api.get(&reference)?.is_some() {
                return Err(EnvironmentError::new(
                    format!("apply {reference}"),
                    "the control plane has such an object already, and would lose it with the trial",
                )
                .with_hint("`istio.extra` brings new objects along; give this one another name"));
            }
            references.push(reference);
        }
        // Noted first: of objects that are refused together, some may have been made.
        self.objects.extend(references);
        // What is in a namespace can only be made once that is there, and what is of a kind once that is known.
        let comes_first = |object: &&Value| object["kind"] == NAMESPACE_KIND || object["kind"] == DEFINITION;
        let (first, others): (Vec<&Value>, Vec<&Value>) = objects.iter().partition(comes_first);
        let (first, others): (Vec<Value>, Vec<Value>) =
            (first.into_iter().cloned().collect(), others.into_iter().cloned().collect());
        let mut made = api.apply(&first)?;
        for definition in first.iter().filter(|object| object["kind"] == DEFINITION) {
            wait_for(&format!("{} is served", Reference::of(definition)?), SERVED_WITHIN, || {
                api.check_goes_on()?;
                Ok(api.serves_what_is_defined(definition).then_some(()))
            })?;
        }
        made.extend(api.apply(&others)?);
        Ok(made)
    }

    /// Whether an object goes with this namespace.
    fn holds(&self, reference: &Reference) -> bool {
        reference.namespace.as_ref() == Some(&self.name)
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

impl Drop for MeshNamespace {
    fn drop(&mut self) {
        if self.control_plane.check("delete the objects of a trial").is_err() {
            // The objects go with it.
            return;
        }
        // In the reverse order, the namespace itself last. What cannot be deleted goes with the control plane.
        self.objects.reverse();
        let api = self.control_plane.api();
        let _ = admission::take_away(api, &self.objects);
        let _ = api.delete(&self.objects);
        // What is elsewhere would meet the next trial, where it waits for somebody to let it go. Nothing can be let go in a
        // namespace that is gone.
        let elsewhere = self.objects.iter().filter(|reference| !self.holds(reference));
        let (namespaces, others): (Vec<_>, Vec<_>) =
            elsewhere.partition(|reference| reference.kind == NAMESPACE_KIND);
        for reference in others {
            let _ = api.drop_finalizers(reference);
        }
        for reference in namespaces {
            let _ = api.finalize_namespace(&reference.name);
        }
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
