//! Fuzz targets against their list in CONTRIBUTING.md, their manifest, their corpora and the tests that run these.

use crate::tree::Tree;
use std::collections::BTreeSet;
use std::fs;

/// Names in a folder, without extensions.
fn names(tree: &Tree, folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(tree.root().join(folder)).expect("it is part of the repository");
    let stem = |entry: fs::DirEntry| entry.path().file_stem().expect("a name").to_string_lossy().into_owned();
    entries.map(|entry| stem(entry.expect("a folder that can be read"))).collect()
}

#[test]
fn every_fuzz_target_is_listed_and_a_test_runs_its_corpus() {
    let tree = Tree::repository();
    let targets = names(&tree, "fuzz/fuzz_targets");
    assert!(targets.len() >= 25, "{targets:?}");
    assert_eq!(names(&tree, "fuzz/corpus"), targets);
    let (listed, manifest) = (tree.read("CONTRIBUTING.md"), tree.read("fuzz/Cargo.toml"));
    let of_crate = |name: &String| {
        fs::read_to_string(tree.root().join(format!("crates/{name}/tests/corpus.rs"))).unwrap_or_default()
    };
    let mut tests: String = names(&tree, "crates").iter().map(of_crate).collect();
    tests += &tree.read("crates/meshmeter/src/commands/collect_spans/message.rs");
    for target in targets {
        assert!(listed.contains(&format!("`{target}`")), "CONTRIBUTING.md lists {target}");
        assert!(manifest.contains(&format!("name = \"{target}\"")), "fuzz/Cargo.toml builds {target}");
        assert!(tests.contains(&format!(": \"{target}\", ")), "a test runs the corpus of {target}");
    }
}
