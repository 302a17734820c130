//! The kustomize bases and the Helm chart in `deploy/` hold the rights that `meshmeter cluster rbac` prints.
//! A test that fails rewrites the outdated file.

mod command;

use cluster::rights::{Parts, Rights, Subject, roles};
use cluster::settings::ClusterSettings;
use command::{run, stdout};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Compares a file with its wanted content, and rewrites it if it differs. Returns true if it did not differ.
fn is_current(file: &str, wanted: &str) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file);
    let is_current = fs::read_to_string(&path).is_ok_and(|text| text == wanted);
    if !is_current {
        fs::write(&path, wanted).unwrap();
    }
    is_current
}

/// Documents that `meshmeter cluster rbac` prints, without comments.
fn printed(options: &[&str]) -> Vec<String> {
    let account = ["cluster", "rbac", "--namespace=meshmeter", "--service-account=meshmeter:meshmeter"];
    let output = run(&[&account, options].concat());
    stdout(&output).split("---\n").skip(1).map(ToOwned::to_owned).collect()
}

#[test]
fn kustomize_bases_have_the_rights_that_rbac_prints() {
    let comment = "# Printed by `meshmeter cluster rbac`.\n";
    let file = |documents: &[String]| comment.to_owned() + &documents.join("---\n");
    let of_istio = printed(&["--istio", "--nodes"]);
    let files = [
        ("kustomize/base/rights.yaml", file(&printed(&[]))),
        // The first two are in the run's namespace: the base has the binding, and the overlay replaces the
        // role.
        ("kustomize/istio/role.yaml", file(&of_istio[..1])),
        ("kustomize/istio/rights.yaml", file(&of_istio[2..])),
    ];
    let stale: Vec<&str> =
        files.iter().filter(|(name, text)| !is_current(name, text)).map(|(name, _)| *name).collect();
    assert!(stale.is_empty(), "written anew: {stale:?}");
}

#[test]
fn the_chart_has_the_rights_that_rbac_prints() {
    let settings = ClusterSettings { existing_namespaces: true, ..ClusterSettings::new("meshmeter", "") };
    let rules = |rights: Rights| -> Value {
        let subject = Subject::User(String::new());
        roles(&rights, &["".to_owned()], &subject)[0]["rules"].clone()
    };
    let without = Rights::new(&settings, Parts::default());
    let all = Rights::new(&settings, Parts { istio: true, ..Parts::default() });
    let ambient = Rights::new(&settings, Parts { ambient: true, ..Parts::default() });
    let mut of_gateway_tls = Rights::new(&settings, Parts { gateway_tls: true, ..Parts::default() });
    of_gateway_tls.in_namespaces.drain(..without.in_namespaces.len());
    let only = |in_mesh, in_cluster| Rights { in_mesh, in_cluster, ..Rights::default() };
    let of_role = |rights: Rights| {
        let objects = roles(&rights, &[], &Subject::User(String::new()));
        objects[0]["rules"].clone()
    };
    let files = json!({
        "inNamespaces": rules(without),
        "inNamespacesWithIstio": rules(all.clone()),
        "inMeshNamespace": of_role(only(all.in_mesh.clone(), Vec::new())),
        "inMeshNamespaceWithAmbient": of_role(only(ambient.in_mesh, Vec::new())),
        "ofGatewayTls": rules(of_gateway_tls),
        "ofNodes": of_role(only(BTreeMap::new(), all.in_cluster)),
    });
    let text = serde_json::to_string_pretty(&files).unwrap() + "\n";
    assert!(is_current("helm/meshmeter/files/rights.json", &text), "written anew");
}
