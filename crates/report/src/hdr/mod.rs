//! Files for the HdrHistogram tools: the interval log and the percentile distribution.
//!
//! Histograms in the log are in nanoseconds, since HistogramLogProcessor and the log analysers divide by a
//! million by default and call the quotient milliseconds. The percentile distribution is in milliseconds, as
//! the HdrHistogram plotter expects. The log's lines are written here and not by the `hdrhistogram` crate,
//! whose writer omits the legend line that other readers need.

mod interval_log;
mod percentiles;

pub use interval_log::IntervalLog;
pub use percentiles::percentile_text;

/// Comment line with the number of requests without a response.
fn censored_comment(censored: u64) -> String {
    format!("#[Without a response: {censored} requests, recorded at the greatest value of the histogram]\n")
}
