//! A load that no option describes: a closed loop, as other generators have it, and a note with an open loop to measure instead.

use crate::cli::LoadArgs;
use crate::failure::Failure;
use report::format::counted;
use results::LoadResult;

/// Clients of the closed loop; `None` if options describe a load.
///
/// # Errors
/// Returns an error if several generators share the load: each would have to guess the same total.
pub fn clients(args: &LoadArgs, default_connections: usize) -> Result<Option<usize>, Failure> {
    let given = &args.schedule;
    let is_rate = given.rate.is_some() || given.stages.is_some() || given.profile.is_some();
    if is_rate || given.clients.is_some() || given.replay.is_some() || args.search.search {
        return Ok(None);
    }
    if given.share.is_some() {
        return Err(
            Failure::usage("--share needs a load to share").with_hint("--rate, --clients or --stages")
        );
    }
    Ok(Some(args.connections.map_or(default_connections, |connections| connections as usize)))
}

/// Says in the result what was measured, and how to measure latency at a rate.
pub fn note(result: &mut LoadResult) {
    let Some(clients) = result.clients else { return };
    let rate = suggested_rate(result.rate.completed).map_or_else(|| "R".to_owned(), |rate| rate.to_string());
    let clients = counted(clients as u64, "client", "clients");
    result.verdict.notes.push(format!(
        "closed-loop: no --rate was given, so this was a closed loop of {clients}, which sends only as fast as the target \
         answers: its response times hide queueing; latency at a fixed rate: the same command with `--rate {rate}`"
    ));
}

/// Half of the throughput, with one significant digit: a rate that the target holds.
fn suggested_rate(completed_per_s: f64) -> Option<u64> {
    let half = completed_per_s / 2.0;
    if !half.is_finite() || half < 1.0 {
        return None;
    }
    let unit = 10_f64.powf(half.log10().floor());
    Some(((half / unit).floor() * unit) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Rates;

    fn noted(completed: f64) -> String {
        let mut result = LoadResult {
            clients: Some(16),
            rate: Rates { completed, ..Rates::default() },
            ..LoadResult::default()
        };
        note(&mut result);
        result.verdict.notes.remove(0)
    }

    #[test]
    fn note_names_the_loop_and_an_open_loop_at_half_of_the_throughput() {
        let text = noted(47_310.0);
        assert!(
            text.starts_with("closed-loop: no --rate was given, so this was a closed loop of 16 clients"),
            "{text}"
        );
        // A command written out would have to repeat every option, headers with secrets among them.
        assert!(text.ends_with("latency at a fixed rate: the same command with `--rate 20000`"), "{text}");
        assert!(!text.contains('\n'));
    }

    #[test]
    fn rate_is_suggested_only_if_something_completed() {
        for (completed, rate) in
            [(0.0, None), (1.9, None), (2.0, Some(1)), (19.9, Some(9)), (1_000_000.0, Some(500_000))]
        {
            assert_eq!(suggested_rate(completed), rate, "{completed}");
        }
    }
}
