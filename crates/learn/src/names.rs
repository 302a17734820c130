//! Names of a topology: DNS labels, each once.

use crate::mesh::Node;
use experiment::topology::file::{self, MAX_NAME_LENGTH, MAX_NAMESPACE_LENGTH};
use std::collections::{HashMap, HashSet};

/// Length of the longest number that is put behind a name, with its `-`.
const MAX_END_LENGTH: usize = 7;

/// Names of nodes in a topology, in the order of the nodes.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// Namespace and name.
    pub(crate) labels: Vec<(String, String)>,
    /// Number of names that had to be changed.
    pub(crate) changed: usize,
    taken: HashSet<(String, String)>,
    /// Number from which the search for a free name goes on, by namespace and beginning of the name: thousands of names that
    /// become one label take no more than one step each.
    next: HashMap<(String, String), usize>,
}

impl Labels {
    pub(crate) fn new(nodes: &[Node]) -> Self {
        let mut labels = Self::default();
        for node in nodes {
            let (namespace, name) = labels.unique(&label(&node.namespace, MAX_NAMESPACE_LENGTH), &node.name);
            labels.changed += usize::from(namespace != node.namespace || name != node.name);
            labels.labels.push((namespace, name));
        }
        labels
    }

    /// A name in a namespace that no node and no client has yet.
    pub(crate) fn unique(&mut self, namespace: &str, name: &str) -> (String, String) {
        let name = service_label(name);
        let full = (namespace.to_owned(), name.clone());
        if self.taken.insert(full.clone()) {
            return full;
        }
        let beginning = name[..name.len().min(MAX_NAME_LENGTH - MAX_END_LENGTH)].to_owned();
        let next = self.next.entry((namespace.to_owned(), beginning)).or_insert(2);
        loop {
            let end = format!("-{next}");
            *next += 1;
            let start = name[..name.len().min(MAX_NAME_LENGTH - end.len())].trim_end_matches('-');
            let full = (namespace.to_owned(), format!("{start}{end}"));
            if self.taken.insert(full.clone()) {
                return full;
            }
        }
    }

    /// Name as other services write it: `namespace/name`.
    pub(crate) fn qualified(&self, node: usize) -> String {
        let (namespace, name) = &self.labels[node];
        format!("{namespace}/{name}")
    }
}

/// Text as a DNS label of at most this length.
fn label(text: &str, max_length: usize) -> String {
    file::label(text, max_length).unwrap_or_else(|| "unnamed".to_owned())
}

/// Text as the name of a Service: a DNS label that begins with a letter.
fn service_label(text: &str) -> String {
    let name = label(text, MAX_NAME_LENGTH);
    if name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name
    } else {
        label(&format!("s-{name}"), MAX_NAME_LENGTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Protocol;

    #[test]
    fn many_names_that_become_one_label_take_one_step_each() {
        let mut labels = Labels::default();
        let short = |number: usize| "!".repeat(number % 200);
        let long = |number: usize| format!("{}{}", "x".repeat(60), number % 900);
        let names: HashSet<(String, String)> = (0..200_000)
            .map(|number| if number % 2 == 0 { short(number) } else { long(number) })
            .map(|name| labels.unique("shop", &name))
            .collect();
        assert_eq!(names.len(), 200_000);
        let steps: usize = labels.next.values().sum();
        assert!(steps < 250_000, "{steps}");
    }

    #[test]
    fn names_become_distinct_labels() {
        let node = |namespace: &str, name: &str| Node {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            protocol: Protocol::default(),
            in_mesh: true,
        };
        let nodes = [
            node("shop", "cart"),
            node("shop", "Cart"),
            node("shop", "cart_"),
            node("<b>", "- {name: x}\n"),
            node("", "9-lives"),
            node("shop", &"x".repeat(200)),
            node("shop", &"x".repeat(201)),
        ];
        let labels = Labels::new(&nodes);
        let names: Vec<String> = (0..nodes.len()).map(|node| labels.qualified(node)).collect();
        let long = "x".repeat(63);
        let cut = format!("shop/{}-2", "x".repeat(61));
        assert_eq!(
            names,
            [
                "shop/cart",
                "shop/cart-2",
                "shop/cart-3",
                "b/name--x",
                "unnamed/s-9-lives",
                &format!("shop/{long}"),
                &cut
            ]
        );
        assert_eq!(labels.changed, 6);
    }
}
