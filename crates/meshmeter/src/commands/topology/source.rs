//! The topology that a command works on: a file, standard input, or a built-in shape.

use super::output;
use crate::cli::{ParameterArgs, SourceArgs};
use crate::commands::run::files::{meant, read_limited, read_text};
use crate::failure::Failure;
use experiment::Protocol;
use experiment::settings::service::ServerSettings;
use experiment::topology::Topology;
use experiment::topology::file::{MAX_REPLICAS, TopologyFile};
use experiment::topology::shapes::{Parameters, SHAPES, Shape, ShapeSettings};
use std::io::{ErrorKind, IsTerminal as _, stderr, stdin};
use std::path::Path;

/// Maximum copies of a topology.
const MAX_NAMESPACES: usize = 1000;

/// Reads the topology and reports settings of its file that have no effect.
pub(super) fn read(args: &SourceArgs) -> Result<Topology, Failure> {
    if Shape::find(&args.source).is_some() {
        return shape(&args.source, &args.parameters);
    }
    let given = Given::new(&args.parameters)?;
    if let Some((key, _)) = given.others.first() {
        return Err(Failure::usage(format!("`{key}` is a parameter of a built-in shape: a file has none")));
    }
    let text = match args.source.as_str() {
        "-" => read_limited(stdin().lock()),
        name => read_text(Path::new(name)),
    };
    let text = text.map_err(|error| {
        let failure = Failure::usage(format!("read the topology `{}`: {error}", args.source));
        if error.kind() == ErrorKind::NotFound {
            let names = SHAPES.map(|shape| shape.name);
            failure.with_hint(match meant(&args.source, names) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => {
                    format!("name a file, `-` for standard input, or a built-in shape: {}", names.join(", "))
                }
            })
        } else {
            failure
        }
    })?;
    let name = if args.source == "-" { "standard input" } else { &args.source };
    let file = TopologyFile::read(&text, name)
        .map_err(|error| Failure::usage(error.render(stderr().is_terminal())))?;
    output::notes(&file.notes);
    Ok(file.topology.copies(given.namespaces))
}

/// Builds a built-in shape.
pub(super) fn shape(name: &str, args: &ParameterArgs) -> Result<Topology, Failure> {
    let shape = Shape::find(name).ok_or_else(|| Failure::usage(format!("there is no shape `{name}`")))?;
    let given = Given::new(args)?;
    let mut parameters = Parameters::defaults(shape);
    let (mut replicas, mut protocol) = (1, Protocol::default());
    for (key, value) in &given.others {
        match (shape.parameter(key), key.as_str()) {
            (Some(parameter), _) => {
                let value = parameter.parse(value).map_err(|error| wrong_value(key, &error))?;
                parameters.set(parameter, value);
            }
            (None, "replicas") => replicas = whole(key, value, MAX_REPLICAS)?,
            (None, "protocol") if shape.is_plain => {
                let named = Protocol::ALL.into_iter().find(|protocol| protocol.name() == value);
                let names = Protocol::ALL.map(Protocol::name).join(", ");
                protocol = named.ok_or_else(|| wrong_value(key, &format!("expected one of {names}")))?;
            }
            (None, _) => return Err(unknown_parameter(shape, key)),
        }
    }
    let settings = ShapeSettings {
        parameters: &parameters,
        replicas,
        protocol,
        server: &ServerSettings::default(),
        client_cpu_limit_cores: None,
        external: false,
    };
    shape
        .topology(given.namespaces, &settings)
        .map_err(|error| Failure::usage(format!("make the topology {name}: {error}")))
}

/// Parameters given by options.
struct Given {
    namespaces: usize,
    /// In command-line order, dedicated options first.
    others: Vec<(String, String)>,
}

impl Given {
    fn new(args: &ParameterArgs) -> Result<Self, Failure> {
        let options = [("namespaces", &args.namespaces), ("hops", &args.hops), ("seed", &args.seed)];
        let options = options.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.clone()?)));
        let mut given = Self { namespaces: 1, others: Vec::new() };
        let set = args.set.iter().map(|pair| {
            let parts =
                pair.split_once('=').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
            parts.ok_or_else(|| Failure::usage(format!("`--set {pair}`: expected key=value")))
        });
        for parameter in options.map(Ok).chain(set) {
            let (key, value) = parameter?;
            if key == "namespaces" {
                given.namespaces = whole(&key, &value, MAX_NAMESPACES)?;
            } else {
                given.others.push((key, value));
            }
        }
        Ok(given)
    }
}

fn whole(key: &str, value: &str, max: usize) -> Result<usize, Failure> {
    let number = value.parse::<usize>().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| wrong_value(key, &format!("`{value}`: expected 1 to {max}")))
}

fn wrong_value(key: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("{key}: {error}"))
}

fn unknown_parameter(shape: &Shape, key: &str) -> Failure {
    let own = shape.parameters.iter().map(|parameter| parameter.name);
    let common = ["namespaces", "replicas"].into_iter().chain(shape.is_plain.then_some("protocol"));
    let names: Vec<&str> = own.chain(common).collect();
    Failure::usage(format!("the shape {} has no parameter `{key}`", shape.name))
        .with_hint(format!("it has {}", names.join(", ")))
}
