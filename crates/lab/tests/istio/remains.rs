//! What a trial leaves behind, and who may read which files while it runs.

use crate::cases::LogFolder;
use crate::modes::spec;
use experiment::environment::error_chain;
use lab::Lab;
use lab::environment::LocalLab;
use mesh::kubernetes::object_ref::ObjectRef;
use results::Mode;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The directories that trials of this mesh have created.
pub fn folders(lab: &Lab) -> Vec<PathBuf> {
    let entries = fs::read_dir(lab.private_dir()).expect("the lab has a private folder");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    paths
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("mesh-")))
        .collect()
}

pub fn trial_leaves_nothing_behind(lab: &Lab, local_lab: &LocalLab) {
    let logs = LogFolder::create();
    let brought_up = local_lab.bring_up(&spec(Mode::Sidecar), logs.path());
    let deployment = brought_up.unwrap_or_else(|error| panic!("{}", error_chain(&error)));
    assert_eq!(folders(lab).len(), 3, "the namespace and two proxies");
    let url = deployment.url();
    let namespace = url.split('.').nth(1).expect("a URL with the namespace in it").to_owned();
    let control_plane = local_lab.running_control_plane().expect("it configured the proxies");
    let service = ObjectRef::new("v1", "Service", Some(&namespace), "server");
    assert!(control_plane.api().get(&service).expect("the API answers").is_some());
    drop(deployment);
    assert_eq!(folders(lab), Vec::<PathBuf>::new());
    for reference in [
        service,
        ObjectRef::new("v1", "Pod", Some(&namespace), "client"),
        ObjectRef::new("security.istio.io/v1", "PeerAuthentication", Some(&namespace), "default"),
        ObjectRef::new("v1", "Namespace", None, &namespace),
    ] {
        let left = control_plane.api().get(&reference).expect("the API answers");
        assert_eq!(left, None, "{reference}");
    }
    assert_eq!(lab.status().expect("the lab is up").pods.len(), 1, "the control plane's pod alone");
}

pub fn keys_are_private(lab: &Lab, local_lab: &LocalLab) {
    let logs = LogFolder::create();
    let brought_up = local_lab.bring_up(&spec(Mode::Sidecar), logs.path());
    let deployment = brought_up.unwrap_or_else(|error| panic!("{}", error_chain(&error)));
    let metadata = |path: &Path| fs::symlink_metadata(path).expect("it is there");
    let mode = |path: &Path| metadata(path).permissions().mode() & 0o777;
    let control_plane = local_lab.running_control_plane().expect("it configured the proxies");
    let folder = control_plane.kubeconfig().parent().expect("a file is in a folder");
    let name = folder.file_name().expect("it has a name").to_string_lossy();
    let servers = folder.with_file_name(format!("{name}-servers"));
    for (folder, owner, files) in [
        (folder, 0, ["kubeconfig", "mesh.json"]),
        (servers.as_path(), 65532, ["api-key.pem", "token-key.pem"]),
    ] {
        assert_eq!((mode(folder), metadata(folder).uid()), (0o700, owner));
        for file in files.map(|file| folder.join(file)) {
            assert_eq!((mode(&file), metadata(&file).uid()), (0o600, owner), "{}", file.display());
        }
    }
    let proxies: Vec<PathBuf> =
        folders(lab).into_iter().filter(|path| path.to_string_lossy().ends_with("-proxy")).collect();
    assert_eq!(proxies.len(), 2);
    for proxy in &proxies {
        assert_eq!((mode(proxy), metadata(proxy).uid()), (0o700, 1337));
        let token = proxy.join("var/run/secrets/tokens/istio-token");
        assert_eq!((mode(&token), metadata(&token).uid()), (0o600, 1337));
    }
    drop(deployment);
    // No secret may end up in a run's results.
    let kept =
        fs::read_dir(logs.path()).expect("it is there").map(|entry| entry.expect("it can be listed").path());
    for file in kept.filter(|path| path.is_file()) {
        let text = fs::read_to_string(&file).expect("logs are text");
        assert!(!text.contains("PRIVATE KEY"), "{}", file.display());
    }
}
