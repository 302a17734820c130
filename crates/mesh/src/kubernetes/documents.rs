//! Splits files of YAML documents without parsing them.

pub(super) fn documents(yaml: &str) -> impl Iterator<Item = &str> {
    let separated = yaml.split("\n---");
    separated.filter(|document| {
        document
            .lines()
            .any(|line| !line.trim().is_empty() && !line.starts_with('#') && !line.starts_with("---"))
    })
}

pub(super) fn name_in(document: &str) -> &str {
    document.lines().find_map(|line| line.strip_prefix("  name: ")).unwrap_or("without a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_split_and_empty_ones_skipped() {
        let yaml = "# DO NOT EDIT\n\n---\napiVersion: v1\nmetadata:\n  name: one\n---\nkind: B\nmetadata:\n  name: two\n---\n";
        let names: Vec<&str> = documents(yaml).map(name_in).collect();
        assert_eq!(names, ["one", "two"]);
    }
}
