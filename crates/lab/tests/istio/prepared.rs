//! The prepared objects of a control plane: a damaged file is replaced, and a start from the file is
//! complete.

use components::{Overrides, folder, istio_files};
use lab::environment::LocalLab;
use mesh::kubernetes::object_ref::ObjectRef;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// One file per choice of programs that was started on this machine.
fn files() -> Vec<PathBuf> {
    let directory = folder().expect("components are installed").join("control-plane");
    let entries = fs::read_dir(directory).expect("a control plane was started");
    let paths = entries.map(|entry| entry.expect("it is ours").path());
    let is_prepared = |path: &PathBuf| path.to_string_lossy().contains("prepared-objects-");
    paths.filter(is_prepared).collect()
}

/// Truncates the files. Other workers of this test may create them again at any time, which does no harm.
pub fn damage() {
    for file in files() {
        let text = fs::read_to_string(&file).expect("it is ours");
        fs::write(&file, &text[..text.len() / 2]).expect("it is ours");
    }
}

/// Checks that the control plane started after the damage has all kinds and has written the file again.
pub fn check_replaced(local_lab: &LocalLab) {
    definitions(local_lab);
    let texts = files().into_iter().map(|file| fs::read_to_string(file).expect("it is ours"));
    // Files for other programs, which have not been started since, are still truncated.
    let mut whole = texts.filter_map(|text| Some((serde_json::from_str::<Value>(&text).ok()?, text)));
    let (contents, text) = whole.next().expect("it was made again");
    assert!(contents.as_array().is_some_and(|objects| !objects.is_empty()));
    assert!(!text.contains("PRIVATE KEY"));
}

/// Checks that the control plane has all kinds from an earlier start: they are older than the first object of
/// its own.
pub fn check_started_from(local_lab: &LocalLab) {
    let created = |object: &Value| object["metadata"]["creationTimestamp"].as_str().map(str::to_owned);
    let namespace = object(local_lab, &ObjectRef::new("v1", "Namespace", None, "istio-system"));
    for definition in definitions(local_lab) {
        assert!(created(&definition) < created(&namespace), "{}", definition["metadata"]["name"]);
    }
}

/// All definitions of custom resources, each of which the API serves.
fn definitions(local_lab: &LocalLab) -> Vec<Value> {
    let files = istio_files(&Overrides::default()).expect("they are installed");
    let texts = [files.istio_crds, files.gateway_api_crds.expect("they are installed")]
        .map(|path| fs::read_to_string(path).expect("text"));
    let names: Vec<&str> =
        texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix("  name: ")).collect();
    assert!(names.len() > 20, "{names:?}");
    let definition = |name: &&str| {
        let reference = ObjectRef::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, name);
        let definition = object(local_lab, &reference);
        let conditions = definition["status"]["conditions"].as_array().expect("it has a status");
        let established =
            |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
        assert!(conditions.iter().any(established), "{name}");
        definition
    };
    names.iter().map(definition).collect()
}

fn object(local_lab: &LocalLab, reference: &ObjectRef) -> Value {
    let control_plane = local_lab.running_control_plane().expect("it configured the proxies");
    let found = control_plane.api().get(reference).expect("the API answers");
    found.unwrap_or_else(|| panic!("there is no {reference}"))
}
