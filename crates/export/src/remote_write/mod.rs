//! Prometheus remote write 1.0 and 2.0: frames become series of samples, then a protobuf message compressed
//! with Snappy.

mod messages;
mod native;
mod series;
mod v1;
mod v2;

use crate::batch::Frame;
use crate::destination::{HistogramForm, Protocol};
use crate::metric::Labels;
use series::SeriesSet;

/// Prometheus stale marker: the float that ends a series.
const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// An encoded request, and the number of its samples and histograms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Encoded {
    pub body: Vec<u8>,
    pub content_type: &'static str,
    /// Value of `X-Prometheus-Remote-Write-Version`.
    pub version: &'static str,
    pub samples: u64,
    pub histograms: u64,
}

/// Protocol version of remote write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Version {
    One,
    Two,
}

/// Version and histogram form of a protocol; `None` if it is not remote write.
pub(crate) fn form(protocol: Protocol) -> Option<(Version, HistogramForm)> {
    match protocol {
        Protocol::RemoteWrite1(form) => Some((Version::One, form)),
        Protocol::RemoteWrite2(form) => Some((Version::Two, form)),
        Protocol::Otlp => None,
    }
}

/// Encodes these frames as one request. `common`: labels of every series.
pub(crate) fn encode(version: Version, form: HistogramForm, frames: &[Frame], common: &Labels) -> Encoded {
    let series = SeriesSet::from_frames(frames, common, form);
    let (samples, histograms) = series.counts();
    let (message, content_type, version) = match version {
        Version::One => (v1::message(series), "application/x-protobuf", "0.1.0"),
        Version::Two => {
            (v2::message(series), "application/x-protobuf;proto=io.prometheus.write.v2.Request", "2.0.0")
        }
    };
    let body = snap::raw::Encoder::new().compress_vec(&message).expect("a request has less than 4 GiB");
    Encoded { body, content_type, version, samples, histograms }
}
