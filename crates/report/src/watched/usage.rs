//! CPU and memory of the components of the trial under way, second by second.

use results::ComponentsSecond;
use std::collections::BTreeMap;

/// Components that are kept, and points of each: further ones are joined two by two.
const MAX_COMPONENTS: usize = 1000;
const MAX_POINTS: usize = 1024;

/// Usage of a component until a moment of the window, since the point before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsagePoint {
    /// Time since the window opened, seconds.
    pub t_s: f64,
    /// CPU time per time.
    pub cpu_cores: f64,
    /// Memory at the moment, bytes; the maximum where points are joined.
    pub memory_bytes: Option<u64>,
}

/// Points by component.
#[derive(Debug, Default)]
pub struct ComponentUsages(BTreeMap<String, Vec<UsagePoint>>);

impl ComponentUsages {
    pub(super) fn add(&mut self, second: ComponentsSecond) {
        for component in second.components {
            let is_known = self.0.contains_key(&component.name);
            if !is_known && self.0.len() >= MAX_COMPONENTS {
                continue;
            }
            let points = self.0.entry(component.name).or_default();
            if points.len() >= MAX_POINTS {
                *points = joined(points, MAX_POINTS / 2);
            }
            points.push(UsagePoint {
                t_s: second.t_s,
                cpu_cores: component.cpu_cores,
                memory_bytes: component.memory_bytes,
            });
        }
    }

    /// Components by name, each with at least one point.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &[UsagePoint])> {
        self.0.iter().map(|(name, points)| (name.as_str(), points.as_slice()))
    }
}

/// At most `most` points, each of which joins as many consecutive ones.
#[must_use]
pub fn joined(points: &[UsagePoint], most: usize) -> Vec<UsagePoint> {
    let join = |points: &[UsagePoint]| {
        let cpu_cores = points.iter().map(|point| point.cpu_cores).sum::<f64>() / points.len() as f64;
        let memory_bytes = points.iter().filter_map(|point| point.memory_bytes).max();
        points.last().map(|last| UsagePoint { t_s: last.t_s, cpu_cores, memory_bytes })
    };
    points.chunks(points.len().div_ceil(most.max(1)).max(1)).filter_map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::ComponentSecond;

    #[test]
    fn long_courses_are_joined_and_keep_their_mean_and_peak() {
        let mut usages = ComponentUsages::default();
        let seconds = MAX_POINTS * 2;
        for second in 1..=seconds {
            let memory_bytes = Some(if second == 7 { 1 << 30 } else { 1 << 20 });
            let cpu_cores = (second % 2) as f64;
            let component = ComponentSecond { name: "server".to_owned(), cpu_cores, memory_bytes };
            usages.add(ComponentsSecond { t_s: second as f64, components: vec![component] });
        }
        let (name, points) = usages.iter().next().unwrap();
        assert_eq!((name, points.last().unwrap().t_s), ("server", seconds as f64));
        assert!(points.len() <= MAX_POINTS && points.is_sorted_by(|one, other| one.t_s < other.t_s));
        assert!(points[..100].iter().all(|point| (point.cpu_cores - 0.5).abs() < 1e-9), "{points:?}");
        assert_eq!(points.iter().filter_map(|point| point.memory_bytes).max(), Some(1 << 30));
        assert_eq!(joined(points, 60).len(), points.len().div_ceil(points.len().div_ceil(60)));
        assert_eq!(joined(&[], 60), []);
    }

    #[test]
    fn components_beyond_a_limit_are_left_out() {
        let component =
            |number: usize| ComponentSecond { name: number.to_string(), ..ComponentSecond::default() };
        let components = (0..MAX_COMPONENTS + 5).map(component).collect();
        let mut usages = ComponentUsages::default();
        usages.add(ComponentsSecond { t_s: 1.0, components });
        assert_eq!(usages.iter().len(), MAX_COMPONENTS);
    }
}
