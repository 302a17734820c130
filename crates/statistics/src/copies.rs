//! Copies: folds identical namespaces and replicas, so that hundreds of components fit in a few lines.

use results::{Cell, ComponentSummary, Estimate, Role};
use std::collections::HashMap;
use std::hash::Hash;

/// Longer lists are folded.
pub const MAX_UNFOLDED: usize = 12;

/// Spread of a figure over copies. Non-finite figures are left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Number of figures.
    pub copies: usize,
    /// Smallest figure.
    pub least: f64,
    /// Median figure.
    pub median: f64,
    /// Largest figure.
    pub greatest: f64,
    /// Sum of all figures.
    pub sum: f64,
}

impl Spread {
    /// `None` if there is no finite figure.
    pub fn new(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.into_iter().filter(|figure| figure.is_finite()).collect();
        figures.sort_unstable_by(f64::total_cmp);
        let middle = figures.len() / 2;
        Some(Self {
            copies: figures.len(),
            least: *figures.first()?,
            median: match figures.len() % 2 {
                0 => f64::midpoint(figures[middle - 1], figures[middle]),
                _ => figures[middle],
            },
            greatest: *figures.last()?,
            sum: figures.iter().sum(),
        })
    }
}

impl Spread {
    /// The median, with the range in place of a confidence interval.
    #[must_use]
    pub fn with_range(&self) -> Estimate {
        let (low, high) = (Some(self.least), Some(self.greatest));
        Estimate { estimate: self.median, low, high, n: self.copies, alone: None }
    }
}

/// A qualified name without its namespace.
#[must_use]
pub fn local_name(qualified_name: &str) -> &str {
    qualified_name.rsplit_once('/').map_or(qualified_name, |(_, name)| name)
}

/// Items grouped by key, in the order in which each key first appears.
pub fn grouped<'a, T, Key: Clone + Eq + Hash>(
    items: impl IntoIterator<Item = &'a T>,
    key: impl Fn(&'a T) -> Key,
) -> Vec<(Key, Vec<&'a T>)> {
    let mut positions: HashMap<Key, usize> = HashMap::new();
    let mut groups: Vec<(Key, Vec<&T>)> = Vec::new();
    for item in items {
        let key = key(item);
        let position = *positions.entry(key.clone()).or_insert_with(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        groups[position].1.push(item);
    }
    groups
}

/// Components of the same role and workload.
#[derive(Clone, Debug)]
pub struct ComponentGroup<'a> {
    /// The component's name if there is only one; else the name they share, such as `a-proxy`.
    pub name: String,
    /// Role of every component in the group.
    pub role: Role,
    /// In the order of the cell; never empty.
    pub components: Vec<&'a ComponentSummary>,
}

impl<'a> ComponentGroup<'a> {
    /// A group of a single component.
    #[must_use]
    pub fn of(component: &'a ComponentSummary) -> Self {
        Self { name: component.name.clone(), role: component.role, components: vec![component] }
    }
}

/// Component names without the parts that distinguish copies: namespace and pod number.
#[derive(Clone, Debug, Default)]
pub struct CopyNames {
    /// Workload of each pod that has a number in its name.
    of_numbered_pods: HashMap<String, String>,
}

/// Suffixes that a proxy's name appends to the name of its pod.
const PROXY_SUFFIXES: [&str; 2] = ["-proxy", "-ztunnel"];

impl CopyNames {
    /// Reads the cell's services to find out which pods are numbered.
    #[must_use]
    pub fn new(cell: &Cell) -> Self {
        let numbered = cell.services.iter().filter(|service| service.replicas > 1);
        let pods = numbered.flat_map(|service| {
            (1..=service.replicas).map(|number| {
                let pod = format!("{}-{number}", service.name);
                let qualified = match service.namespace.as_str() {
                    "" => pod,
                    namespace => format!("{namespace}/{pod}"),
                };
                (qualified, service.name.clone())
            })
        });
        Self { of_numbered_pods: pods.collect() }
    }

    /// Shortens a component name: `shop-1/a-2-proxy` becomes `a-proxy`.
    #[must_use]
    pub fn of(&self, component: &str) -> String {
        let suffix =
            PROXY_SUFFIXES.into_iter().find(|suffix| component.ends_with(suffix)).unwrap_or_default();
        let pod = component.strip_suffix(suffix).unwrap_or(component);
        match self.of_numbered_pods.get(pod) {
            Some(workload) => format!("{workload}{suffix}"),
            None => local_name(component).to_owned(),
        }
    }
}

/// The components of a cell: one group each if there are few. Otherwise they are grouped by role and
/// workload, or by role alone if that still leaves many.
#[must_use]
pub fn component_groups(cell: &Cell) -> Vec<ComponentGroup<'_>> {
    groups_of(cell, cell.components.iter().collect())
}

/// Like [`component_groups`], for some components of a cell.
#[must_use]
pub fn groups_of<'a>(cell: &Cell, components: Vec<&'a ComponentSummary>) -> Vec<ComponentGroup<'a>> {
    if components.len() <= MAX_UNFOLDED {
        return groups(components, |component| component.name.clone());
    }
    let names = CopyNames::new(cell);
    let by_workload = groups(components.clone(), |component| names.of(&component.name));
    let is_pods = |component: &ComponentSummary| {
        matches!(component.role, Role::App | Role::Generator)
            || PROXY_SUFFIXES.iter().any(|suffix| component.name.ends_with(suffix))
    };
    let rest = by_workload.iter().filter(|group| is_pods(group.components[0])).count();
    if rest <= 2 * MAX_UNFOLDED {
        return by_workload;
    }
    groups(components, |component| match component.role {
        _ if !is_pods(component) => names.of(&component.name),
        Role::App => "services".to_owned(),
        Role::Generator => "drivers".to_owned(),
        _ => "proxies of pods".to_owned(),
    })
}

fn groups<'a>(
    components: Vec<&'a ComponentSummary>,
    name: impl Fn(&ComponentSummary) -> String,
) -> Vec<ComponentGroup<'a>> {
    grouped(components, |component| (component.role, name(component)))
        .into_iter()
        .map(|((role, name), components)| match components.as_slice() {
            [only] => ComponentGroup { name: only.name.clone(), role, components },
            _ => ComponentGroup { name, role, components },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_ignores_non_finite_figures() {
        let spread = Spread::new([4.0, 1.0, f64::NAN, 3.0, 2.0]).unwrap();
        assert_eq!((spread.copies, spread.least, spread.median, spread.greatest), (4, 1.0, 2.5, 4.0));
        assert!((spread.sum - 10.0).abs() < 1e-9);
        assert_eq!(Spread::new([5.0, 1.0, 3.0]).map(|spread| spread.median), Some(3.0));
        assert_eq!(Spread::new([f64::INFINITY]), None);
    }

    #[test]
    fn copy_names_omit_namespace_and_number() {
        let names = CopyNames {
            of_numbered_pods: [("shop-1/web-2", "web"), ("web-1", "web")]
                .map(|(pod, workload)| (pod.to_owned(), workload.to_owned()))
                .into(),
        };
        let short = ["shop-1/web-2", "shop-1/web-2-proxy", "web-1-ztunnel", "shop-2/list-2", "ztunnel"]
            .map(|name| names.of(name));
        assert_eq!(short, ["web", "web-proxy", "web-ztunnel", "list-2", "ztunnel"]);
    }
}
