//! The table of environment variables: it has each variable that code reads, and no other.

use crate::rust_source;
use crate::tree::{Tree, files};
use std::collections::{BTreeMap, BTreeSet};

/// Text before the name of a variable where one is read, also as the value of an option.
const READS: [&str; 4] = ["env::var(\"", "env::var_os(\"", "(env = \"", ", env = \""];

#[test]
fn every_variable_read_is_in_the_table_and_every_row_is_read() {
    let tree = Tree::repository();
    let table = rows(&tree.read("docs/environment-variables.md"));
    let in_code = variables_in_code(&tree);
    assert!(in_code.len() >= 25, "variables are found: {in_code:?}");
    let missing: Vec<_> = in_code.iter().filter(|name| !table.contains_key(*name)).collect();
    assert!(missing.is_empty(), "docs/environment-variables.md lacks {missing:?}");
    let lock = tree.read("Cargo.lock");
    let is_of_library = |readers: &str| {
        readers.strip_prefix("library ").is_some_and(|names| {
            names.split(", ").all(|name| lock.contains(&format!("name = \"{}\"\n", name.trim_matches('`'))))
        })
    };
    let stale = table.iter().filter(|(name, readers)| !in_code.contains(*name) && !is_of_library(readers));
    let stale: Vec<_> = stale.collect();
    assert!(stale.is_empty(), "rows of docs/environment-variables.md that nothing reads: {stale:?}");
}

#[test]
fn variables_are_found_however_code_names_them() {
    let source = r#"
        const LEVEL_VARIABLE: &str = "M_LEVEL";
        #[arg(env = "M_OPTION")]
        fn level() { env::var(LEVEL_VARIABLE); std::env::var_os("M_DIRECT"); ["M_LISTED"].find_map(|each| env::var_os(each)); }
        // env::var("M_COMMENT")
    "#;
    let sorted = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>();
    assert_eq!(sorted(variables_of_source(source)), ["M_DIRECT", "M_LEVEL", "M_LISTED", "M_OPTION"]);
    let peers = r#"fn find(variable: impl Fn(&str) -> Option<PathBuf>) { variable("PEER2"); }"#;
    assert_eq!(sorted(variables_of_source(peers)), ["PEER2"]);
    let script =
        "name=${M_DEFAULT:-x} ${M_GIVEN:+x}\n: ${M_SET:=y}\nOWN=1\necho ${OWN:-} \"$M_PLAIN\" $OWN\n";
    assert_eq!(sorted(variables_of_script(script)), ["M_DEFAULT", "M_GIVEN", "M_SET"]);
    let script = "VARIABLE = \"M_NAMED\"\nos.environ.get(\"M_GOT\", 1) or os.environ[\"M_READ\"]\nos.environ[\"M_WRITTEN\"] = 2\n";
    assert_eq!(sorted(variables_of_script(script)), ["M_GOT", "M_NAMED", "M_READ"]);
    let makefile = "OWN := $(or $(M_FIRST),x)\nall:\n\t$(MAKE) $(OWN) $(M_SECOND)\n";
    assert_eq!(sorted(variables_of_makefile(makefile)), ["M_FIRST", "M_SECOND"]);
}

/// Names of the table, with who reads them.
fn rows(document: &str) -> BTreeMap<String, String> {
    let cells = document.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let readers = |rest: &str| rest.split(" | ").next().unwrap_or_default().to_owned();
    cells.map(|(name, rest)| (name.to_owned(), readers(rest))).collect()
}

fn variables_in_code(tree: &Tree) -> BTreeSet<String> {
    let mut variables = BTreeSet::new();
    for path in files(&tree.root().join("crates")) {
        if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with(file!()) {
            variables.extend(variables_of_source(&std::fs::read_to_string(&path).unwrap()));
        }
    }
    for path in files(&tree.root().join("components")) {
        let source = std::fs::read_to_string(&path).unwrap();
        variables.extend(between(&source, "Variable = \""));
    }
    for path in files(&tree.root().join("scripts")) {
        variables.extend(variables_of_script(&std::fs::read_to_string(&path).unwrap()));
    }
    variables.extend(variables_of_makefile(&tree.read("Makefile")));
    variables
}

/// Names given to a function that reads variables, and constants that are called a variable. Where code reads a variable by a
/// name that it was given, every literal of the file that looks like one counts.
fn variables_of_source(source: &str) -> BTreeSet<String> {
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect();
    let mut names: BTreeSet<_> = READS.iter().flat_map(|marker| between(&code, marker)).collect();
    names.extend(between(&code, "VARIABLE: &str = \""));
    if reads_given_name(&code) {
        names.extend(rust_source::texts(&code).literals.into_iter().filter(|literal| is_name(literal)));
    }
    names
}

/// True if code reads variables by names in lower case, or is given a function that does.
fn reads_given_name(code: &str) -> bool {
    let given = ["env::var(", "env::var_os("].iter().flat_map(|call| code.split(call).skip(1));
    given.into_iter().any(|argument| argument.starts_with(|first: char| first.is_ascii_lowercase()))
        || ["OsString", "PathBuf"].iter().any(|value| code.contains(&format!("Fn(&str) -> Option<{value}>")))
}

/// Text between a marker and the next quote, for each marker.
fn between(code: &str, marker: &str) -> Vec<String> {
    code.split(marker).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}

/// True for a literal that looks like the name of a variable.
fn is_name(text: &str) -> bool {
    let is_part =
        |character: char| character.is_ascii_uppercase() || character.is_ascii_digit() || character == '_';
    let begins = text.starts_with(|first: char| first.is_ascii_uppercase());
    text.ends_with("_proxy") || text.len() >= 3 && begins && text.chars().all(is_part)
}

/// Variables with a default or an alternative, which is how shell scripts read what may be absent, and those that Python reads.
fn variables_of_script(script: &str) -> BTreeSet<String> {
    let expanded = script.split("${").skip(1).filter_map(|rest| Some(rest.split_once(':')?.0.to_owned()));
    let is_own =
        |name: &String| script.lines().any(|line| line.trim_start().starts_with(&format!("{name}=")));
    let of_shell = expanded.filter(|name| is_name(name) && !is_own(name));
    let subscripts = script.split("os.environ[\"").skip(1).filter_map(|rest| rest.split_once("\"]"));
    let read = subscripts.filter(|(_, after)| !after.starts_with(" = ")).map(|(name, _)| name.to_owned());
    let named = between(script, "VARIABLE = \"").into_iter().chain(between(script, "os.environ.get(\""));
    of_shell.chain(read).chain(named).collect()
}

/// Variables with a default, and those that are used without being set.
fn variables_of_makefile(makefile: &str) -> BTreeSet<String> {
    let defaults = makefile.lines().filter_map(|line| Some(line.split_once(" ?= ")?.0.to_owned()));
    let used = makefile.split("$(").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()));
    let of_make = ["MAKE", "MAKEFILE_LIST", "CURDIR"];
    let is_own =
        |name: &String| [" = ", " := "].iter().any(|assigns| makefile.contains(&format!("{name}{assigns}")));
    let used = used.filter(|name| is_name(name) && !of_make.contains(&name.as_str()) && !is_own(name));
    defaults.chain(used).collect()
}
