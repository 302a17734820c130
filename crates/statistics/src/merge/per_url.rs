//! What several generators measured of each URL.

use super::placed::{Placed, distinct};
use super::unanswered::{self, Unanswered};
use super::{MergeError, times};
use results::{LoadResult, UrlResult};

/// Name of the distribution in errors.
const FIELD: &str = "per_url.response_time_us";

/// URLs in the order of their first appearance. Empty unless every generator measured URLs apart.
pub(super) fn per_url(placed: &[Placed]) -> Result<Vec<UrlResult>, MergeError> {
    let results = || placed.iter().map(|placed| &placed.part.result);
    if results().any(|result| result.per_url.is_empty()) {
        return Ok(Vec::new());
    }
    let urls = distinct(results().flat_map(|result| &result.per_url).map(|result| result.url.as_str()));
    urls.into_iter().map(|url| of_url(placed, url)).collect()
}

fn of_url(placed: &[Placed], url: String) -> Result<UrlResult, MergeError> {
    fn find<'a>(result: &'a LoadResult, url: &str) -> Option<&'a UrlResult> {
        result.per_url.iter().find(|record| record.url == url)
    }
    let total = |count: fn(&UrlResult) -> u64| {
        let counts = placed.iter().filter_map(|placed| find(&placed.part.result, &url).map(count));
        counts.fold(0, u64::saturating_add)
    };
    let response_time_us =
        times(placed, FIELD, |result| find(result, &url).map(|record| &record.response_time_us))?;
    let records = placed.iter().filter_map(|placed| find(&placed.part.result, &url));
    let unanswered: Vec<Unanswered<'_>> = records.map(Unanswered::of_url).collect();
    let waits = unanswered::waits(&unanswered);
    Ok(UrlResult {
        sent: total(|record| record.sent),
        unsent: total(|record| record.unsent),
        completed: total(|record| record.completed),
        failed: total(|record| record.failed),
        censored_above_us: unanswered::above_us(&unanswered, &waits, &response_time_us)?,
        unanswered_waits_us: waits.to_entries(),
        response_time_us,
        url,
    })
}
