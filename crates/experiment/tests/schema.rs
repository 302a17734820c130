//! JSON Schemas of experiment, topology and traffic files against the files that there are, and against wrong ones.

mod json_schema;

use experiment::topology::shapes::{Parameters, SHAPES, ShapeSettings};
use experiment::{Experiment, Files, Protocol, topology, traffic};
use json_schema::violations;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A YAML file as an editor sees it: numbers and booleans have their types.
fn parsed(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap_or_else(|error| panic!("{error}: {yaml}"))
}

fn assert_valid(schema: &Value, yaml: &str, name: &str) {
    let found = violations(schema, &parsed(yaml));
    assert!(found.is_empty(), "{name}: {found:#?}");
}

/// Texts of files in a folder of the repository.
fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(repository().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let fitting = entries.filter(|path| path.extension().is_some_and(|own| own == extension));
    fitting.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap())).collect()
}

/// YAML blocks of the documents.
fn blocks() -> Vec<(String, String)> {
    let documents = files("docs", "md").into_iter().chain(files("", "md"));
    let mut blocks = Vec::new();
    for (name, text) in documents {
        let fenced = text.split("```").skip(1).step_by(2);
        blocks.extend(
            fenced.filter_map(|block| Some((name.clone(), block.strip_prefix("yaml\n")?.to_owned()))),
        );
    }
    blocks
}

fn is_topology(yaml: &str) -> bool {
    yaml.lines().any(|line| line == "services:")
}

fn is_traffic(yaml: &str) -> bool {
    yaml.lines().any(|line| line == "requests:")
}

/// Data of traffic files.
struct Data;

impl Files for Data {
    fn text(&self, path: &str) -> Result<String, String> {
        Ok(if path.ends_with(".csv") { "name\nada\n" } else { "{\"id\": 1}\n" }.to_owned())
    }

    fn locate(&self, path: &str) -> Result<PathBuf, String> {
        Ok(path.into())
    }
}

#[test]
fn presets_and_what_runs_write_of_them_are_valid() {
    let schema = experiment::file::json_schema();
    let studies = files("studies", "yaml");
    assert!(studies.len() >= 11, "{} presets are found", studies.len());
    for (name, yaml) in studies {
        let first = yaml.lines().next();
        let comment = "# yaml-language-server: $schema=../docs/schema/experiment.json";
        assert_eq!(first, Some(comment), "{name} names its schema for editors");
        assert_valid(&schema, &yaml, &name);
        let experiment = Experiment::parse(&yaml, &name).unwrap();
        assert_valid(&schema, &experiment.to_yaml(), &format!("{name}, as resolved"));
    }
}

#[test]
fn documented_files_are_valid() {
    let (experiment, topology) = (experiment::file::json_schema(), topology::file::json_schema());
    let (topologies, experiments): (Vec<_>, Vec<_>) =
        blocks().into_iter().filter(|(_, yaml)| !is_traffic(yaml)).partition(|(_, yaml)| is_topology(yaml));
    assert!(!topologies.is_empty() && !experiments.is_empty(), "documents show files of both kinds");
    for (name, yaml) in experiments {
        assert_valid(&experiment, &yaml, &name);
    }
    for (name, yaml) in topologies {
        assert_valid(&topology, &yaml, &name);
        // The same keys describe a topology within an experiment.
        let inline = format!("name: x\nmodes: [none]\nload: {{rate: 1}}\ntopology: {}", parsed(&yaml));
        assert_valid(&experiment, &inline, &name);
    }
}

#[test]
fn traffic_files_that_are_read_are_valid_and_typos_are_not() {
    let schema = traffic::json_schema();
    let documented: Vec<_> = blocks().into_iter().filter(|(_, yaml)| is_traffic(yaml)).collect();
    assert!(!documented.is_empty(), "documents show traffic");
    for (name, yaml) in documented {
        assert_valid(&schema, &yaml, &name);
    }
    let file = |request: &str, data: &str| {
        format!(
            "url: http://a\nheaders: {{X-A: 5}}\nrequests:\n  - {{path: /, {request}}}\ndata: {{x: {{{data}}}}}\n"
        )
    };
    for (request, data) in [
        ("weight: 1000000, method: M-SEARCH, name: 5", "unique: true, from: 0"),
        ("body: true", "range: [0, 50], order: random"),
        ("body-file: a", "values: [1, b, true], at-end: stop"),
        ("body-size: 2KiB, expect: {status: 200}", "csv: a.csv, column: name, order: turn"),
        ("expect: {status: [2xx, 404], min-bytes: 0, max-bytes: 1KiB}", "csv: a.csv, at-end: again"),
        ("headers: {X-B: '{x}'}", "json-lines: a, pointer: /id"),
        ("body: '{x}'", "filler: 1KiB"),
        ("body: '{x}'", "filler: {log-normal: {median: 1KiB, p99: 20KiB}}"),
    ] {
        let yaml = file(request, data);
        let read = traffic::read(&yaml, "a.yaml", &Data).map_err(|error| error.render(false));
        assert!(read.is_ok(), "{read:?}");
        assert_valid(&schema, &yaml, request);
    }
    for (request, data) in [
        ("wieght: 1", "unique: true"),
        ("weight: 0", "unique: true"),
        ("method: get", "unique: true"),
        ("expect: {status: 20}", "unique: true"),
        ("expect: {size: 20}", "unique: true"),
        ("weight: 1", "unique: false"),
        ("weight: 1", "range: [1]"),
        ("weight: 1", "csv: a.csv, order: down"),
    ] {
        let yaml = file(request, data);
        assert!(traffic::read(&yaml, "a.yaml", &Data).is_err(), "{yaml}");
        assert!(!violations(&schema, &parsed(&yaml)).is_empty(), "{yaml}");
    }
}

#[test]
fn written_topologies_of_all_shapes_are_valid() {
    let schema = topology::file::json_schema();
    for shape in SHAPES {
        let parameters = Parameters::defaults(shape);
        let settings = ShapeSettings {
            parameters: &parameters,
            replicas: 2,
            protocol: Protocol::Http1,
            server: &experiment::settings::service::ServerSettings::default(),
            client_cpu_limit_cores: Some(0.5),
            external: false,
        };
        assert_valid(&schema, &shape.topology(2, &settings).unwrap().to_yaml(), shape.name);
    }
}

#[test]
fn further_valid_experiments_are_valid() {
    let schema = experiment::file::json_schema();
    for rest in [
        "load: {rate: [500, 10k, 600/m, 1.5k/s], connections: [2, 8]}",
        "load: {clients: [1, 64], pacing: precise, payload: 1.5MiB, duration: 1m30s}",
        "load: {rate: 1}\nproxy: {cpu: [250m, 0.5, 1], mtls: [on, off, permissive], access-log: off}",
        "load: {rate: 1}\nistio: {lua: [off, on], background-services: {services: [0, 200]}, retries: 0}",
        "load: {rate: 1}\nistio: {lua: \"function envoy_on_request(handle)\\nend\\n\"}",
        "load: {rate: 1}\ntopology: {shape: [chain, tree], namespaces: [1, 2]}",
        "load: {rate: 1}\ntopology: {shape: random, services: [10, 20], density: [10%, 0.2], client-in-mesh: off}",
        "load: {rate: 1}\ntopology: {file: shop.yaml, namespaces: 5}",
        "load: {rate: 1}\ntopology: shop.yml",
        "load: {rate: 1}\nobjective:\nproxy: null\nistio:\n  authorization:\n",
        "load: {rate: 1}\nquestion: 5\nproxy: {workers: [2]}",
        "load: {rate: 1}\nobjective: {p99: 20ms, p99.9: 50 ms, errors: 0.1%}\nseed: 18446744073709551615",
        "fleet: {}",
        "fleet: {kind: 'ztunnel=100,sidecar', churn: [0, 25%/m, 50%/m], changes: []}",
        "fleet: {kind: [sidecar, ztunnel], churn: 10/s, changes: [endpoint-added=5, root-policy], scope: on}",
    ] {
        let yaml = format!("name: x\nmodes: none\n{rest}\n");
        assert_valid(&schema, &yaml, rest);
    }
}

#[test]
fn wrong_experiments_are_refused_at_their_place() {
    let schema = experiment::file::json_schema();
    for (rest, place) in [
        ("lode: {rate: 1}", ".lode"),
        ("load: {rat: 1}", ".load.rat"),
        ("load: {rate: fast}", ".load.rate"),
        ("load: {rate: 0}", ".load.rate"),
        ("load: {rate: [500, -1]}", ".load.rate"),
        ("load: {rate: 1, duration: 10}", ".load.duration"),
        ("load: {rate: 1, duration: [1s, 2s]}", ".load.duration"),
        ("load: {rate: 1, payload: 1KX}", ".load.payload"),
        ("load: {rate: 1, connections: 0}", ".load.connections"),
        ("load: {rate: 1, connections: []}", ".load.connections"),
        ("load: {rate: 1, connections: 2.5}", ".load.connections"),
        ("load: {rate: 1, connections: {a: 1}}", ".load.connections"),
        ("load: {clients: 25001}", ".load.clients"),
        ("load: {rate: [5, 5]}", ".load.rate"),
        ("load: {clients: [8, 8]}", ".load.clients"),
        ("load:", ".load"),
        ("load: {rate: 1}\nproxy: {workers: [2, 2]}", ".proxy.workers"),
        ("load: {rate: 1}\npublished:", ".published"),
        ("load: {rate: 1}\nrepeats: 1001", ".repeats"),
        ("load: {rate: 1}\nrepeats: [1, 2]", ".repeats"),
        ("load: {rate: 1}\nmesh: consul", ".mesh"),
        ("load: {rate: 1}\nproxy: {cpu: two}", ".proxy.cpu"),
        ("load: {rate: 1}\nproxy: 2", ".proxy"),
        ("load: {rate: 1}\nserver: {error-rate: 5}", ".server.error-rate"),
        ("load: {rate: 1}\nistio: {authorization: {pahts: 1}}", ".istio.authorization.pahts"),
        ("load: {rate: 1}\nistio: {lua: yes please}", ".istio.lua"),
        ("load: {rate: 1}\ntopology: circle", ".topology"),
        ("load: {rate: 1}\ntopology: {shape: chain, hopps: 2}", ".topology"),
        ("load: {rate: 1}\ntopology: {services: [{name: Web}]}", ".topology"),
        ("load: {rate: 1}\npublished: {source: a}", ".published"),
        ("fleet: {changes: [endpoint-added=0]}", ".fleet.changes"),
        ("fleet: {kind: 'sidecar,proxy'}", ".fleet.kind"),
        ("fleet: {churn: 25%}", ".fleet.churn"),
    ] {
        let found = violations(&schema, &parsed(&format!("name: x\nmodes: none\n{rest}\n")));
        assert!(found.iter().any(|one| one.starts_with(place)), "{rest}: {found:?}");
    }
    for incomplete in [
        "modes: [none]\n",
        "name: x\n",
        "name: x\nmodes: []\n",
        "name: x\nmodes: [sidcar]\n",
        "name: x\nmodes: [none, none]\n",
    ] {
        assert!(!violations(&schema, &parsed(incomplete)).is_empty(), "{incomplete}");
    }
}

#[test]
fn wrong_topologies_are_refused_at_their_place() {
    let schema = topology::file::json_schema();
    for (yaml, place) in [
        ("services: []", ".services"),
        ("servces: []", ".servces"),
        ("services: [{nam: web}]", ".services[0]"),
        ("services: [{name: web, replicas: none}]", ".services[0].replicas"),
        ("services: [{name: web, script: [{sleep: 5}]}]", ".services[0].script[0]"),
        ("services: [{name: web, script: [{call: a, sleep: 1ms}]}]", ".services[0].script[0]"),
        ("services: [{name: web, script: [{parallel: []}]}]", ".services[0].script[0]"),
        ("services: [{name: web, script: [{call: {service: a, retry: 1}}]}]", ".services[0].script[0]"),
        ("services: [{name: web, response: {gauss: 1KiB}}]", ".services[0].response"),
        ("services: [{name: web, endpoints: {find: {}}}]", ".services[0].endpoints"),
        ("services: [{name: web, resources: {limits: {disk: 1}}}]", ".services[0].resources.limits.disk"),
        ("services: [{name: web}]\ndrivers: [{name: a}]", ".drivers[0]"),
    ] {
        let found = violations(&schema, &parsed(yaml));
        assert!(found.iter().any(|one| one.starts_with(place)), "{yaml}: {found:?}");
        assert!(topology::file::read(yaml, "wrong").is_err(), "the reader refuses it, too: {yaml}");
    }
}
