//! Checks that a trial's pods still have the rules that they were brought up with.
//!
//! Counters do not show that a rule was removed while connections were open: only new connections would leave
//! the path. A trial whose rules changed is invalid all the same.

use crate::pod::Pod;
use mesh::concurrent::side_by_side;
use std::collections::BTreeMap;

/// Redirect rules of some pods at one moment, by pod; or why they could not be read.
#[derive(Debug)]
pub(super) struct Rules(BTreeMap<String, Result<Vec<String>, String>>);

impl Rules {
    pub fn from_pods<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> Self {
        let rules = side_by_side(pods, |pod| {
            // A program that could not run in time may succeed at the second attempt.
            (pod.name().to_owned(), pod.saved_rules().or_else(|_| pod.saved_rules()))
        });
        Self(rules.into_iter().collect())
    }

    /// How the rules of these pods differ. A difference must show in a second listing to count.
    pub fn changes<'a>(&self, pods: impl IntoIterator<Item = &'a Pod> + Clone) -> Vec<String> {
        let changes = self.changes_to(&Self::from_pods(pods.clone()));
        if changes.is_empty() { changes } else { self.changes_to(&Self::from_pods(pods)) }
    }

    fn changes_to(&self, now: &Self) -> Vec<String> {
        let changed = |(pod, before): (&String, &Result<Vec<String>, String>)| match (before, now.0.get(pod))
        {
            (_, None) => Some(format!("pod {pod} is gone")),
            (Ok(before), Some(Ok(now))) => (before != now).then(|| {
                let count = |rules: &[String], others: &[String]| {
                    rules.iter().filter(|rule| !others.contains(rule)).count()
                };
                format!(
                    "rules of pod {pod} were changed in the trial: {} gone, {} new, {} in all",
                    count(before, now),
                    count(now, before),
                    now.len()
                )
            }),
            // If they could not be read before, the program that reads them may be missing.
            (Err(_), Some(_)) => None,
            (Ok(_), Some(Err(reason))) => Some(format!("rules of pod {pod} cannot be read: {reason}")),
        };
        self.0.iter().filter_map(changed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(of_client: Result<&[&str], &str>) -> Rules {
        let of_client = of_client.map(|rules| rules.iter().map(|rule| (*rule).to_owned()).collect());
        Rules([("client".to_owned(), of_client.map_err(str::to_owned))].into())
    }

    #[test]
    fn removed_and_added_rules_are_counted() {
        let before = rules(Ok(&["*nat", "-A OUTPUT -j A", "-A A -j REDIRECT"]));
        assert!(before.changes_to(&rules(Ok(&["*nat", "-A OUTPUT -j A", "-A A -j REDIRECT"]))).is_empty());
        assert_eq!(
            before.changes_to(&rules(Ok(&["*nat", "-A OUTPUT -j RETURN"]))),
            ["rules of pod client were changed in the trial: 2 gone, 1 new, 2 in all"]
        );
        // The effect of rules depends on their order.
        let swapped = rules(Ok(&["*nat", "-A A -j REDIRECT", "-A OUTPUT -j A"]));
        assert_eq!(before.changes_to(&swapped).len(), 1);
        assert_eq!(
            before.changes_to(&rules(Err("no such program"))),
            ["rules of pod client cannot be read: no such program"]
        );
        assert!(rules(Err("no such program")).changes_to(&before).is_empty());
    }
}
