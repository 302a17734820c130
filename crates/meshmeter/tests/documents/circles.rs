//! Circles of imports between the files of a crate.

use crate::tree::{Tree, files};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Maximum number of files in a circle.
const MAX_FILES: usize = 3;
/// Crates with larger circles, and the maximum there: to be removed.
const EXCEPTIONS: [(&str, usize); 1] = [("statistics", 6)];

/// Texts of a crate's modules by path, such as `network::tls`, without the root and without tests.
type Modules = BTreeMap<String, String>;

fn modules(source: &Path) -> Modules {
    let named = files(source).into_iter().filter_map(|file| {
        let path = file.strip_prefix(source).unwrap().to_str()?.strip_suffix(".rs")?;
        let name = path.strip_suffix("/mod").unwrap_or(path).replace('/', "::");
        let is_test = name.split("::").any(|part| part == "tests" || part.ends_with("_tests"));
        let is_root = name == "lib" || name == "main";
        (!is_test && !is_root).then(|| (name, fs::read_to_string(&file).unwrap()))
    });
    named.collect()
}

/// Modules that a module imports, apart from those of its own folder that it only re-exports.
fn imports<'m>(module: &str, modules: &'m Modules) -> BTreeSet<&'m str> {
    let code = modules[module].split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default().trim());
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut imported = BTreeSet::new();
    for (before, tree) in code.split(';').filter_map(|statement| statement.rsplit_once("use ")) {
        let visibility = before.rsplit('\n').next().unwrap_or_default();
        if visibility.is_empty() || visibility.starts_with("pub") {
            let paths = paths(tree).into_iter();
            imported.extend(paths.filter_map(|path| imported_by(module, &path, visibility, modules)));
        }
    }
    imported.remove(module);
    imported
}

/// Paths in the tree of a `use`.
fn paths(tree: &str) -> Vec<String> {
    let Some((start, branches)) = tree.split_once('{') else { return vec![tree.to_owned()] };
    let mut depth = 0;
    let branches = branches.split(|character| {
        depth += i32::from(character == '{') - i32::from(character == '}');
        depth < 0 || depth == 0 && character == ','
    });
    let named = branches.flat_map(paths).filter(|path| !path.trim().is_empty());
    named.map(|path| format!("{start}{}", path.trim())).collect()
}

fn imported_by<'m>(module: &str, path: &str, visibility: &str, modules: &'m Modules) -> Option<&'m str> {
    let path = path.split(" as ").next().unwrap_or_default().trim();
    let mut parts: Vec<_> = if path.starts_with("crate::") { vec![] } else { module.split("::").collect() };
    let is_own = |first: &str| visibility.is_empty() && modules.contains_key(&format!("{module}::{first}"));
    for (place, part) in path.split("::").enumerate() {
        match part.trim() {
            "crate" | "self" => {}
            "super" => _ = parts.pop(),
            first if place == 0 && !is_own(first) => return None,
            part => parts.push(part),
        }
    }
    let mut names = (0..=parts.len()).rev().map(|length| parts[..length].join("::"));
    names.find_map(|name| modules.get_key_value(&name)).map(|(name, _)| name.as_str())
}

/// Modules that are reached by imports.
fn reached<'m>(from: &'m str, imports: &BTreeMap<&str, BTreeSet<&'m str>>) -> BTreeSet<&'m str> {
    let (mut reached, mut pending) = (BTreeSet::new(), vec![from]);
    while let Some(module) = pending.pop() {
        pending.extend(imports[module].iter().filter(|imported| reached.insert(**imported)));
    }
    reached
}

/// The largest circle.
fn circle(modules: &Modules) -> BTreeSet<&str> {
    let imports = modules.keys().map(|module| (module.as_str(), imports(module, modules))).collect();
    let reached: BTreeMap<_, _> =
        modules.keys().map(|module| (module.as_str(), reached(module, &imports))).collect();
    let circles = reached.iter().map(|(module, others)| {
        others.iter().filter(|other| reached[**other].contains(module)).copied().collect()
    });
    circles.max_by_key(BTreeSet::len).unwrap_or_default()
}

#[test]
fn files_import_each_other_in_small_circles_only() {
    let tree = Tree::repository();
    for entry in fs::read_dir(tree.root().join("crates")).unwrap() {
        let folder = entry.unwrap();
        let exception = EXCEPTIONS.iter().find(|(name, _)| folder.file_name() == *name);
        let modules = modules(&folder.path().join("src"));
        let circle = circle(&modules);
        let maximum = exception.map_or(MAX_FILES, |(_, maximum)| *maximum);
        assert!(circle.len() <= maximum, "{:?} has a circle of imports: {circle:?}", folder.file_name());
    }
}

#[test]
fn circle_is_found_in_every_form_of_import() {
    let modules: Modules = [
        ("a", "use crate::{\n    b::{self, inner::Deep},\n    other,\n};\nuse std::fs;"),
        ("b", "mod inner;\npub use inner::Reexported;\npub(crate) use super::c as third;"),
        ("b::inner", "use super::super::e; // a comment"),
        ("c", "fn f() {\n    use crate::d::Type;\n}"),
        ("d", "use inner::Part;\n#[cfg(test)]\nmod tests {\n    use crate::e;\n}"),
        ("d::inner", "use crate::a::Name;"),
        ("e", ""),
    ]
    .map(|(name, text)| (name.to_owned(), text.to_owned()))
    .into();
    assert_eq!(circle(&modules), BTreeSet::from(["a", "b", "c", "d", "d::inner"]));
}
