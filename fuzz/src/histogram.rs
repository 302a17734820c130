//! Invariants of any text in place of an HdrHistogram. Included by the fuzz target and by the test that replays the
//! corpus.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use results::{LatencyHistogram, NanosecondEncoder};

/// Begins the compressed form of version 2.
const COMPRESSED: u32 = 0x1c84_9314;

/// The first byte says whether the rest is the text, the bytes in it, or what is compressed in them.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let text = match first % 3 {
        0 => String::from_utf8_lossy(rest).into_owned(),
        1 => STANDARD.encode(rest),
        _ => STANDARD.encode(compressed(rest)),
    };
    let Ok(histogram) = LatencyHistogram::decode(&text) else { return };
    check_histogram(&histogram);
    let again = LatencyHistogram::decode(&histogram.encode()).expect("our own encoding");
    assert_eq!(again.summary(), histogram.summary());
    let mut merged = histogram.clone();
    merged.merge(&again);
    check_histogram(&merged);
    let _ = NanosecondEncoder::new().encode(&histogram);
}

fn check_histogram(histogram: &LatencyHistogram) {
    let percentiles = [0.0, 50.0, 99.0, 99.99, 100.0].map(|percentile| histogram.percentile_us(percentile));
    assert!(percentiles.is_sorted(), "{percentiles:?}");
    assert!(percentiles.iter().chain([&histogram.mean_us()]).all(|time| time.is_finite()), "{percentiles:?}");
    let steps = histogram.percentile_steps();
    assert!(steps.is_sorted_by(|one, next| one.count <= next.count), "{steps:?}");
    let recorded: u64 = histogram.recorded().fold(0, |sum, value| value.count.saturating_add(sum));
    assert_eq!(recorded, histogram.count());
    assert!(histogram.stddev_us() >= 0.0);
    let _ = (histogram.buckets(), histogram.sub_buckets(), histogram.with_censored(5).summary());
}

/// In a zlib stream of one stored block, so that a fuzzer reaches what is behind the compression.
fn compressed(bytes: &[u8]) -> Vec<u8> {
    let bytes = &bytes[..bytes.len().min(usize::from(u16::MAX))];
    let length = bytes.len() as u16;
    let mut stream = vec![0x78, 0x01, 0x01];
    stream.extend(length.to_le_bytes());
    stream.extend((!length).to_le_bytes());
    stream.extend(bytes);
    stream.extend(adler32(bytes).to_be_bytes());
    let mut whole = COMPRESSED.to_be_bytes().to_vec();
    whole.extend((stream.len() as u32).to_be_bytes());
    whole.extend(stream);
    whole
}

fn adler32(bytes: &[u8]) -> u32 {
    let (mut one, mut two) = (1_u32, 0_u32);
    for byte in bytes {
        one = (one + u32::from(*byte)) % 65_521;
        two = (two + one) % 65_521;
    }
    two << 16 | one
}
