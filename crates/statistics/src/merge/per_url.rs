//! Merged results of each URL, or of each kind of request.

use super::placed::{Placed, distinct};
use super::unanswered::{self, Unanswered};
use super::{MergeError, added, times};
use results::{KindResult, LoadResult, UrlResult};

/// Names of the distributions in errors.
const OF_URL: &str = "per_url.response_time_us";
const OF_KIND: &str = "kinds.response_time_us";

/// URLs in the order of their first appearance. Empty unless every generator measured URLs apart.
pub(super) fn per_url(placed: &[Placed]) -> Result<Vec<UrlResult>, MergeError> {
    let results = || placed.iter().map(|placed| &placed.part.result);
    if results().any(|result| result.per_url.is_empty()) {
        return Ok(Vec::new());
    }
    let urls = distinct(results().flat_map(|result| &result.per_url).map(|result| result.url.as_str()));
    let of_url =
        |url: String| sum(placed, OF_URL, |result| result.per_url.iter().find(|record| record.url == url));
    urls.into_iter().map(of_url).collect()
}

/// Kinds of requests in the order of their first appearance. Empty unless every generator had kinds.
pub(super) fn kinds(placed: &[Placed]) -> Result<Vec<KindResult>, MergeError> {
    let results = || placed.iter().map(|placed| &placed.part.result);
    if results().any(|result| result.kinds.is_empty()) {
        return Ok(Vec::new());
    }
    let all = || results().flat_map(|result| &result.kinds);
    let names = distinct(all().map(|kind| kind.name.as_str()));
    let of_name = |name: String| {
        let weight = all().find(|kind| kind.name == name).map_or(0, |kind| kind.weight);
        let requests = sum(placed, OF_KIND, |result| {
            let kind = result.kinds.iter().find(|kind| kind.name == name)?;
            Some(&kind.requests)
        })?;
        Ok(KindResult { weight, requests, name })
    };
    names.into_iter().map(of_name).collect()
}

/// The sum of the records that `find` selects.
fn sum(
    placed: &[Placed],
    field: &'static str,
    find: impl Fn(&LoadResult) -> Option<&UrlResult>,
) -> Result<UrlResult, MergeError> {
    let records = || placed.iter().filter_map(|placed| find(&placed.part.result));
    let total = |count: fn(&UrlResult) -> u64| records().map(count).fold(0, u64::saturating_add);
    let response_time_us =
        times(placed, field, |result| find(result).map(|record| &record.response_time_us))?;
    let unanswered: Vec<Unanswered<'_>> = records().map(Unanswered::of_url).collect();
    let waits = unanswered::waits(&unanswered);
    Ok(UrlResult {
        sent: total(|record| record.sent),
        unsent: total(|record| record.unsent),
        completed: total(|record| record.completed),
        failed: total(|record| record.failed),
        censored_above_us: unanswered::above_us(&unanswered, &waits, &response_time_us)?,
        unanswered_waits_us: waits.to_entries(),
        status: added(records().map(|record| &record.status)),
        errors: added(records().map(|record| &record.errors)),
        response_time_us,
        url: records().next().map(|record| record.url.clone()).unwrap_or_default(),
    })
}
