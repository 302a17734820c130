//! The order of the crates in docs/architecture.md against what their manifests import.

use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// For tests and benchmarks: they have no row, and import no crate of the workspace.
const FOR_TESTS: [&str; 2] = ["fleet-stub", "test-support"];

/// Crates of the workspace that each crate imports, its tests included.
fn imports(tree: &Tree) -> BTreeMap<String, BTreeSet<String>> {
    let folders = fs::read_dir(tree.root().join("crates")).unwrap().map(|entry| entry.unwrap().file_name());
    let crates: BTreeSet<String> = folders.map(|name| name.into_string().unwrap()).collect();
    let imported = |name: &String| {
        let manifest = tree.read(&format!("crates/{name}/Cargo.toml"));
        named_dependencies(&manifest)
            .filter(|dependency| crates.contains(*dependency))
            .map(str::to_owned)
            .collect()
    };
    crates.iter().map(|name| (name.clone(), imported(name))).collect()
}

/// Keys of all sections of dependencies.
fn named_dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let sections = manifest
        .split("\n[")
        .filter(|section| section.split_once(']').is_some_and(|(name, _)| name.ends_with("dependencies")));
    sections.flat_map(|section| section.lines().skip(1)).filter_map(|line| line.split(['.', ' ', '=']).next())
}

/// Row of each crate in the map of the architecture, from the top: a column starts behind two spaces.
fn rows<'a>(tree: &Tree, crates: impl Iterator<Item = &'a String>) -> BTreeMap<&'a str, usize> {
    let text = tree.read("docs/architecture.md");
    let (_, section) = text.split_once("\n## Crates\n").expect("the section is there");
    let map = section.split("```").nth(1).expect("the map is there");
    let row_of = |name: &str| {
        let is_of_row = |row: &str| row.split("  ").any(|column| column.trim() == name);
        let mut rows = map.lines().enumerate().filter(|(_, row)| is_of_row(row)).map(|(number, _)| number);
        let row = rows.next().unwrap_or_else(|| panic!("{name} has no row"));
        assert_eq!(rows.next(), None, "{name} has two rows");
        row
    };
    crates
        .filter(|name| !FOR_TESTS.contains(&name.as_str()))
        .map(|name| (name.as_str(), row_of(name)))
        .collect()
}

#[test]
fn crates_import_lower_rows_only() {
    let tree = Tree::repository();
    let imports = imports(&tree);
    let rows = rows(&tree, imports.keys());
    for (name, imported) in &imports {
        for other in imported.iter().filter(|other| !FOR_TESTS.contains(&other.as_str())) {
            assert!(
                rows.get(name.as_str()).is_some_and(|row| rows[other.as_str()] > *row),
                "{name} imports {other}, which is not in a lower row of docs/architecture.md"
            );
        }
    }
    assert!(imports["meshmeter"].len() > 10 && imports["load"].contains("results"), "{imports:?}");
}

#[test]
fn ground_floor_imports_nothing_of_the_workspace() {
    let imports = imports(&Tree::repository());
    for name in FOR_TESTS.into_iter().chain(["results"]) {
        assert_eq!(imports[name], BTreeSet::new(), "{name}");
    }
}
