//! Result of a search: the rate, the bracket, every probe, the curve, and a summary as text.

use super::runner::{SearchRunner, outcome_name};
use results::{
    FoundRate, LatencyHistogram, ProbeRecord, RatePoint, SEARCH_SCHEMA, SearchResult, SearchVerdict,
};
use statistics::search::{Found, Limit, ProbeOutcome, SearchEnd, SearchOutcome};

impl SearchRunner<'_> {
    pub(super) fn result(self) -> SearchResult {
        let outcome = self.search.outcome();
        let verdict = self.verdict(&outcome);
        let started_at =
            self.records.first().map_or_else(String::new, |first| first.result.started_at.clone());
        SearchResult {
            schema: SEARCH_SCHEMA.to_owned(),
            urls: self.settings.urls.clone(),
            started_at,
            duration_s: self.started.elapsed().as_secs_f64(),
            objective: self.settings.objective.to_string(),
            precision: self.settings.plan.precision,
            lowest_rate: self.settings.plan.lowest,
            highest_rate: self.settings.plan.highest,
            found: outcome.found.map(found_rate),
            curve: curve(&self.records),
            probes: self.records,
            verdict,
        }
    }

    fn verdict(&self, outcome: &SearchOutcome) -> SearchVerdict {
        let limit = outcome.found.map(|found| match found.limit {
            Limit::Target => "target",
            Limit::Generator => "generator",
            Limit::Range => "range",
        });
        SearchVerdict {
            end: if self.unreachable { "unreachable" } else { end_name(outcome.end) }.to_owned(),
            limit: limit.map(str::to_owned),
            text: self.answer(outcome),
            notes: self.notes(outcome),
        }
    }

    fn answer(&self, outcome: &SearchOutcome) -> String {
        let objective = self.settings.objective;
        let lowest = self.settings.plan.lowest;
        let Some(found) = &outcome.found else {
            return match outcome.end {
                SearchEnd::NotHeld => format!("{objective} does not hold, not even at {lowest} requests/s."),
                SearchEnd::GeneratorLimited => format!(
                    "The generator itself was the limit even at {lowest} requests/s: nothing can be said of the target."
                ),
                _ => format!("No probe held {objective} before the search ended."),
            };
        };
        let rate = found.rate;
        if !found.confirmed {
            let until = match outcome.end {
                SearchEnd::Unconfirmed => "no rate could be confirmed",
                _ => "the search ended before a rate was confirmed",
            };
            return format!("{rate} requests/s held {objective} in single probes; {until}.");
        }
        let confirmed = format!("{} of {} confirming runs held", found.held, found.of);
        match (found.limit, found.failed_at) {
            (Limit::Generator, _) => format!(
                "At least {rate} requests/s hold {objective} ({confirmed}). Above, the generator was the limit, not the target."
            ),
            (Limit::Range, _) | (_, None) => format!(
                "At least {rate} requests/s hold {objective} ({confirmed}): nothing failed up to the highest rate probed."
            ),
            (Limit::Target, Some(failed)) => format!(
                "{rate} requests/s hold {objective} ({confirmed}); at {failed} requests/s it did not hold."
            ),
        }
    }

    fn notes(&self, outcome: &SearchOutcome) -> Vec<String> {
        let mut notes = Vec::new();
        let Some(found) = &outcome.found else { return notes };
        let (low, high) = found.likely;
        if found.limit == Limit::Target && high / low > 1.0 + 2.0 * self.settings.plan.precision {
            notes.push(format!(
                "probes near the border disagree: it lies somewhere from {low:.0} to {high:.0} requests/s"
            ));
        }
        if let Some(rate) = self.too_short_at {
            notes.push(format!(
                "up to {rate} requests/s, probes were shorter than the objective needs: a longer --search-probe-max \
                 would decide"
            ));
        }
        for hole in &outcome.holes {
            notes.push(format!(
                "at {hole} requests/s, below the rate found, the objective failed more often than it held"
            ));
        }
        let busy = |record: &&ProbeRecord| record.reason.contains("connections were busy");
        if found.limit == Limit::Target && self.records.iter().find(busy).is_some() {
            notes.push(
                "above, all connections were busy: with more --connections the target may carry more"
                    .to_owned(),
            );
        }
        notes
    }
}

fn end_name(end: SearchEnd) -> &'static str {
    match end {
        SearchEnd::Found => "found",
        SearchEnd::NotHeld => "not-held",
        SearchEnd::Unconfirmed => "unconfirmed",
        SearchEnd::GeneratorLimited => "generator-limited",
        SearchEnd::Interrupted => "interrupted",
    }
}

fn found_rate(found: Found) -> FoundRate {
    FoundRate {
        rate: found.rate,
        confirmed: found.confirmed,
        confirmations_held: found.held,
        confirmations: found.of,
        low: found.rate,
        high: found.failed_at,
        likely_low: found.likely.0,
        likely_high: found.likely.1,
    }
}

/// Every probed rate with all its probes merged, lowest first.
fn curve(records: &[ProbeRecord]) -> Vec<RatePoint> {
    let mut rates: Vec<f64> = records.iter().filter_map(|record| record.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let at = |rate: f64| {
        let there: Vec<&ProbeRecord> =
            records.iter().filter(|record| record.rate == Some(rate) && record.outcome.is_some()).collect();
        (!there.is_empty()).then(|| point(rate, &there))
    };
    rates.into_iter().filter_map(at).collect()
}

fn point(rate: f64, records: &[&ProbeRecord]) -> RatePoint {
    let mut times = LatencyHistogram::new();
    let mut censored: u64 = 0;
    for record in records {
        censored = censored.saturating_add(record.result.response_time_us.censored);
        // Always succeeds: the engine has just encoded it.
        if let Ok(histogram) = LatencyHistogram::decode(&record.result.response_time_us.histogram) {
            times.merge(&histogram);
        }
    }
    let total = |figure: fn(&ProbeRecord) -> f64| records.iter().map(|record| figure(record)).sum::<f64>();
    let seconds = total(|record| record.result.duration_s).max(f64::MIN_POSITIVE);
    let sent = total(|record| record.result.requests.sent as f64).max(1.0);
    let failed = total(|record| record.result.requests.error_fraction() * record.result.requests.sent as f64);
    let times = times.summary_with(censored);
    RatePoint {
        rate,
        probes: records.len(),
        held: records
            .iter()
            .filter(|record| record.outcome.as_deref() == Some(outcome_name(ProbeOutcome::Held)))
            .count(),
        completed_rate: total(|record| record.result.rate.completed * record.result.duration_s) / seconds,
        error_fraction: failed / sent,
        saturated: records.iter().any(|record| record.result.verdict.saturated),
        mean_us: times.mean,
        p50_us: times.p50,
        p90_us: times.p90,
        p99_us: times.p99,
        p99_9_us: times.p99_9,
        max_us: times.max,
    }
}
