//! Proof that each filter of a gateway acted on every request that the gateway received, and that it rejects
//! requests.

use super::delta::allowance;
use crate::filters::probe::Probe;
use results::{FilterProbe, FilterProof};

/// Data that shows that a filter acted.
#[derive(Clone, Debug)]
pub struct CountedFilter {
    pub name: &'static str,
    /// Requests counted in the trial by the filter or the service behind it, or why they are unknown.
    pub checks: Result<u64, String>,
    /// Response statuses of its probes, or why there are none.
    pub probes: Vec<(Probe, Result<Vec<u16>, String>)>,
}

/// Requests that reached the gateway in the trial.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    pub requests: u64,
    pub connections: u64,
}

/// Proofs of the filters, and the reasons why any is not proven.
pub fn prove(filters: &[CountedFilter], received: Received) -> (Vec<FilterProof>, Vec<String>) {
    let mut reasons = Vec::new();
    let proofs = filters.iter().map(|filter| {
        check_counted(filter, received, &mut reasons);
        filter
            .probes
            .iter()
            .for_each(|(probe, statuses)| check_probe(filter.name, probe, statuses, &mut reasons));
        let probe = |(probe, statuses): &(Probe, Result<Vec<u16>, String>)| FilterProbe {
            what: probe.what.to_owned(),
            statuses: statuses.clone().unwrap_or_default(),
        };
        FilterProof {
            name: filter.name.to_owned(),
            checks: filter.checks.clone().ok(),
            requests: received.requests,
            probes: filter.probes.iter().map(probe).collect(),
        }
    });
    (proofs.collect(), reasons)
}

/// Per connection, one request may have been given up before the filter saw it.
fn check_counted(filter: &CountedFilter, received: Received, reasons: &mut Vec<String>) {
    let Received { requests, connections } = received;
    match &filter.checks {
        Err(reason) => {
            reasons.push(format!("filter {} did not report its counters: {reason}", filter.name));
        }
        Ok(checks)
            if (*checks == 0 && requests > 0) || checks + allowance(requests, connections) < requests =>
        {
            let name = filter.name;
            reasons.push(format!(
                "filter {name} checked {checks} of the {requests} requests that the gateway received"
            ));
        }
        Ok(_) => {}
    }
}

fn check_probe(name: &str, probe: &Probe, statuses: &Result<Vec<u16>, String>, reasons: &mut Vec<String>) {
    match statuses {
        Err(reason) => reasons.push(format!("filter {name} could not be probed by {}: {reason}", probe.what)),
        Ok(statuses) if !probe.is_met_by(statuses) => {
            let statuses: Vec<String> = statuses.iter().map(u16::to_string).collect();
            let statuses = statuses.join(", ");
            reasons.push(format!("filter {name} answered {} with status {statuses}", probe.what));
        }
        Ok(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::Filter;

    const RECEIVED: Received = Received { requests: 1000, connections: 4 };

    fn firewall(checks: Result<u64, String>, statuses: [Result<Vec<u16>, String>; 3]) -> Vec<String> {
        let probes = Filter::Waf.probes().into_iter().zip(statuses).collect();
        let (proofs, reasons) = prove(&[CountedFilter { name: "waf", checks, probes }], RECEIVED);
        assert_eq!((proofs[0].requests, proofs[0].probes.len()), (1000, 3));
        reasons
    }

    #[test]
    fn filter_that_checks_every_request_and_refuses_is_proven() {
        let refusing = || [Ok(vec![403]), Ok(vec![403]), Ok(vec![200])];
        assert!(firewall(Ok(1000), refusing()).is_empty());
        // One request per connection was given up; probes and retries are counted in addition.
        assert!(firewall(Ok(996), refusing()).is_empty() && firewall(Ok(1003), refusing()).is_empty());
    }

    #[test]
    fn missing_checks_and_refusals_are_reported() {
        let reasons = firewall(Ok(500), [Ok(vec![200]), Err("refused".to_owned()), Ok(vec![403])]);
        assert_eq!(
            reasons,
            [
                "filter waf checked 500 of the 1000 requests that the gateway received",
                "filter waf answered an attack by script with status 200",
                "filter waf could not be probed by an attack by SQL: refused",
                "filter waf answered a clean query with status 403",
            ]
        );
        let reasons = firewall(Err("it has died".to_owned()), [Ok(vec![403]), Ok(vec![403]), Ok(vec![200])]);
        assert_eq!(reasons, ["filter waf did not report its counters: it has died"]);
    }
}
