//! `meshmeter topology`.

mod command;

use command::{meshmeter, run, stderr, stdout};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service, ServiceAccount};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

#[test]
fn typo_of_a_shape_or_file_has_a_suggestion() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("shop.yaml"), SHOP).unwrap();
    for (command, name, hint) in [
        ("check", "pairr", "did you mean `pair`?"),
        ("draw", "pairr", "did you mean `pair`?"),
        ("draw", "emojivotto.yaml", "did you mean `emojivoto`?"),
        ("check", "shopp.yaml", "did you mean `shop.yaml`?"),
        ("check", "quantum", "or a built-in shape: pair, "),
    ] {
        let output = meshmeter().args(["topology", command, name]).current_dir(&folder).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(stderr(&output).contains(hint), "{name}: {}", stderr(&output));
    }
}

const SHOP: &str = "\
name: shop
defaults: {resources: {requests: {cpu: 100m, memory: 50Mi}, limits: {cpu: 1}}, response: 620}
services:
  - name: web
    namespace: shop
    replicas: 2
    script:
      - parallel: [{call: list}, {call: {service: legacy/old, probability: 10%}}]
      - sleep: 2ms
  - name: list
    namespace: shop
    protocol: grpc
    script:
      - query: {database: db, find: flights}
      - query: {database: db, update: seats}
  - {name: old, namespace: legacy, in-mesh: false}
databases: [{name: db, namespace: shop}]
drivers: [{name: generator, in: client, target: shop/web}]
";

const ISOTOPE: &str = "\
apiVersion: isotope.istio.io/v1alpha1
kind: MockServiceGraph
defaults: {requestSize: 1 KB, responseSize: 10KB}
services:
- name: a
  isEntrypoint: true
  numReplicas: 2
  script:
  - - call: b
    - call: {service: c, probability: 50}
  - sleep: 10ms
- {name: b, errorRate: 0.01%}
- {name: c, type: grpc}
";

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with(&self, name: &str, text: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        text_of(&path).to_owned()
    }
}

fn text_of(path: &Path) -> &str {
    path.to_str().expect("the test's folders have plain names")
}

/// Standard output of a command, which must succeed.
fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

fn with_stdin(arguments: &[&str], text: &str) -> Output {
    let mut command = meshmeter();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    child.stdin.take().expect("piped").write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn wrong_topology_is_shown_with_file_and_line() {
    let files = Files::new();
    let file = files.with("shop.yaml", &SHOP.replace("call: list", "call: lists"));
    let output = run(&["topology", "check", &file]);
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("shop.yaml:8:") && error.contains("lists"), "{error}");
    let output = with_stdin(&["topology", "draw", "-"], "services: 1\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("standard input:1:"), "{}", stderr(&output));
}

#[test]
fn check_prints_requests_and_what_fits() {
    let files = Files::new();
    let text = printed(&["topology", "check", &files.with("shop.yaml", SHOP), "--namespaces", "3"]);
    // The line about this machine differs on every machine.
    let machine = text.lines().position(|line| line.starts_with("On this machine: ")).expect("the machine");
    let (head, rest): (Vec<&str>, Vec<&str>) =
        (text.lines().take(machine).collect(), text.lines().skip(machine + 1).collect());
    insta::assert_snapshot!("check", head.join("\n"));
    let modes: Vec<&str> = rest.iter().filter_map(|line| line.split_whitespace().next()).take(5).collect();
    assert_eq!(modes, ["mode", "none", "sidecar", "ambient", "ambient-waypoint"]);
    assert!(rest.iter().skip(1).take(4).all(|line| line.ends_with("fits") || line.ends_with("does not fit")));
}

#[test]
fn check_as_json_has_every_service_and_call() {
    let text = printed(&["topology", "check", "tiered", "--namespaces", "50", "--json"]);
    let checked: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&checked["services"], &checked["pods"]), (&200.into(), &250.into()));
    assert_eq!(checked["edges"].as_array().unwrap().len(), 250);
    let c = checked["workloads"].as_array().unwrap().iter().find(|one| one["name"] == "c").unwrap();
    assert_eq!((c["requests"].as_f64(), c["namespace"].as_str()), (Some(2.0), Some("tiered-1")));
    let sidecar = &checked["data_planes"][1];
    assert_eq!((&sidecar["mode"], &sidecar["proxies"]), (&"sidecar".into(), &250.into()));
    assert!(sidecar["fits"].is_boolean() && sidecar["memory_bytes"].as_u64() > Some(9_000_000_000));
}

#[test]
fn drawings_have_every_service() {
    let files = Files::new();
    let file = files.with("shop.yaml", SHOP);
    let svg = printed(&["topology", "draw", &file]);
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{svg}");
    for name in ["client", "web", "list", "old", "db"] {
        assert!(svg.contains(&format!(">{name}<")), "{name}: {svg}");
    }
    let out = files.0.path().join("shop.mmd");
    let output = run(&["topology", "draw", &file, "--format", "mermaid", "--out", text_of(&out)]);
    assert!(output.status.success() && output.stdout.is_empty(), "{}", stderr(&output));
    insta::assert_snapshot!("mermaid", fs::read_to_string(out).unwrap());
    let dot = printed(&["topology", "draw", &file, "--format", "dot"]);
    assert!(dot.starts_with("digraph \"shop\" {"), "{dot}");
}

#[test]
fn own_format_round_trips() {
    let files = Files::new();
    let first = printed(&["topology", "convert", &files.with("shop.yaml", SHOP), "--to", "meshmeter"]);
    let second = with_stdin(&["topology", "convert", "-", "--to", "meshmeter"], &first);
    assert_eq!(stdout(&second), first);
}

#[test]
fn isotope_files_round_trip() {
    let files = Files::new();
    let first = printed(&["topology", "convert", &files.with("graph.yaml", ISOTOPE), "--to", "isotope"]);
    insta::assert_snapshot!("isotope", first);
    let second = with_stdin(&["topology", "convert", "-", "--to", "isotope"], &first);
    assert_eq!(stdout(&second), first);
}

#[test]
fn parts_unsupported_by_isotope_are_named() {
    let files = Files::new();
    let more = SHOP
        .replace("- sleep: 2ms", "- sleep: {uniform: [1ms, 2ms]}\n      - cpu: 1ms\n      - memory: 1KiB");
    let output = run(&["topology", "convert", &files.with("shop.yaml", &more), "--to", "isotope"]);
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    for part in
        ["CPU work (shop/web)", "memory", "database queries (shop/list)", "a sleep from a distribution"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn isotope_notes_name_what_is_left_out() {
    let text = "services: [{name: web, in-mesh: false, replicas: 2, resources: {limits: {cpu: 1}}}]";
    let output = with_stdin(&["topology", "convert", "-", "--to", "isotope"], text);
    assert!(output.status.success(), "{}", stderr(&output));
    let notes = stderr(&output);
    assert!(notes.contains("resources are left out (web)") && notes.contains("`in-mesh: false`"), "{notes}");
}

/// Parses a document as the type of its kind and serializes it again without loss.
fn round_trip<T: DeserializeOwned + Serialize>(document: &str) {
    let object: T = serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{error}: {document}"));
    let read: Value = serde_saphyr::from_str(document).unwrap();
    assert_eq!(serde_json::to_value(&object).unwrap(), read, "{document}");
}

#[test]
fn manifests_are_kubernetes_objects() {
    let files = Files::new();
    let file = files.with("shop.yaml", SHOP);
    let arguments =
        ["topology", "convert", &file, "--to", "kubernetes", "--image", "example.com/meshmeter:1"];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--database"), "{}", stderr(&output));
    let text = printed(&[&arguments[..], &["--database", "mongo.example.com:27017"]].concat());
    insta::assert_snapshot!("kubernetes", text);
    let mut kinds = Vec::new();
    for document in text.split("---\n").skip(1) {
        let value: Value = serde_saphyr::from_str(document).unwrap();
        let kind = value["kind"].as_str().unwrap().to_owned();
        match kind.as_str() {
            "Namespace" => round_trip::<Namespace>(document),
            "ServiceAccount" => round_trip::<ServiceAccount>(document),
            "Deployment" => round_trip::<Deployment>(document),
            "Service" => round_trip::<Service>(document),
            "ConfigMap" => {
                round_trip::<ConfigMap>(document);
                let file = value["data"]["topology.yaml"].as_str().unwrap();
                let read = with_stdin(&["topology", "convert", "-", "--to", "meshmeter"], file);
                assert_eq!(stdout(&read), file, "the pods read the whole topology");
            }
            other => panic!("{other}"),
        }
        kinds.push(kind);
    }
    let count = |kind: &str| kinds.iter().filter(|found| *found == kind).count();
    let counts = ["Namespace", "ConfigMap", "ServiceAccount", "Service", "Deployment"].map(count);
    assert_eq!(counts, [2, 2, 3, 3, 3]);
}

#[test]
fn kubernetes_needs_an_image() {
    let output = with_stdin(&["topology", "convert", "-", "--to", "kubernetes"], ISOTOPE);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--image"), "{}", stderr(&output));
}

#[test]
fn manifests_without_namespaces_name_none() {
    let arguments = ["topology", "convert", "-", "--to", "kubernetes", "--image", "meshmeter"];
    let text = stdout(&with_stdin(&arguments, ISOTOPE));
    assert!(!text.contains("  namespace:") && !text.contains("kind: Namespace"), "{text}");
    assert!(text.contains("kubectl apply --namespace NAME"), "{text}");
    assert!(text.contains("meshmeter load --rate 100 http://a:8080/\n"), "{text}");
}

#[test]
fn shapes_are_generated_with_their_parameters() {
    let chain = printed(&["topology", "generate", "chain", "--hops", "3", "--set", "replicas=2"]);
    assert_eq!(chain.matches("replicas: 2").count(), 3, "{chain}");
    let again = with_stdin(&["topology", "convert", "-", "--to", "meshmeter"], &chain);
    assert_eq!(stdout(&again), chain);
    let seeded = |seed| printed(&["topology", "generate", "random", "--set", "services=12", "--seed", seed]);
    assert_eq!(seeded("7"), seeded("7"));
    assert_ne!(seeded("7"), seeded("8"));
    let tenants = printed(&["topology", "draw", "tiered", "--namespaces", "50", "--format", "mermaid"]);
    assert!(tenants.contains("tiered-1 … tiered-50"), "{tenants}");
    let all = ["topology", "draw", "tiered", "--namespaces", "50", "--format", "mermaid", "--all"];
    assert_eq!(printed(&all).matches("subgraph").count(), 50);
}

#[test]
fn wrong_parameters_are_named() {
    for (arguments, expected) in [
        (&["generate", "chain", "--hops", "0"][..], "hops: `0`"),
        (&["generate", "chain", "--seed", "1"], "no parameter `seed`"),
        (&["generate", "chain", "--set", "hops"], "expected key=value"),
        (&["generate", "chian"], "'chain'"),
        (&["generate", "chain", "--set", "protocol=udp"], "http/1.1, http/2, grpc, tcp"),
        (&["check", "no-such-file.yaml"], "built-in shape: pair, chain"),
    ] {
        let output = run(&[&["topology"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
    let output = with_stdin(&["topology", "draw", "-", "--hops", "2"], ISOTOPE);
    assert!(stderr(&output).contains("`hops` is a parameter of a built-in shape"), "{}", stderr(&output));
}
