//! Prefixed integers (RFC 7541, section 5.1).

use super::CompressionError;

/// Maximum accepted value.
pub const MAX: usize = u32::MAX as usize;

/// Decodes the integer in the low `prefix_bits` of the first byte and the following bytes. Also returns its
/// encoded size.
///
/// # Errors
/// Returns an error if the integer is truncated or above [`MAX`].
#[inline]
pub fn decode(bytes: &[u8], prefix_bits: u32) -> Result<(usize, usize), CompressionError> {
    let mask = (1_usize << prefix_bits) - 1;
    let first = usize::from(*bytes.first().ok_or(CompressionError::Truncated)?) & mask;
    if first < mask {
        return Ok((first, 1));
    }
    let mut value = mask;
    for index in 0..5 {
        let byte = bytes.get(index + 1).ok_or(CompressionError::Truncated)?;
        value += usize::from(byte & 0x7f) << (7 * index);
        if value > MAX {
            return Err(CompressionError::IntegerTooLarge);
        }
        if byte & 0x80 == 0 {
            return Ok((value, index + 2));
        }
    }
    Err(CompressionError::IntegerTooLarge)
}

/// Appends an integer. `pattern` is the part of the first byte above the prefix.
pub fn encode(value: usize, prefix_bits: u32, pattern: u8, out: &mut Vec<u8>) {
    let mask = (1_usize << prefix_bits) - 1;
    if value < mask {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_rfc_7541_appendix_c_1() {
        for (value, prefix_bits, encoded) in
            [(10, 5, &[0x0a][..]), (1337, 5, &[0x1f, 0x9a, 0x0a]), (42, 8, &[0x2a])]
        {
            assert_eq!(decode(encoded, prefix_bits), Ok((value, encoded.len())));
            let mut out = Vec::new();
            encode(value, prefix_bits, 0, &mut out);
            assert_eq!(out, encoded);
        }
    }

    #[test]
    fn integers_round_trip_and_truncated_or_large_ones_are_rejected() {
        for prefix_bits in 4..8 {
            for value in (0..600).chain([16_383, 16_384, 1 << 20, u32::MAX as usize]) {
                let mut out = Vec::new();
                encode(value, prefix_bits, 0, &mut out);
                assert_eq!(decode(&out, prefix_bits), Ok((value, out.len())));
                assert_eq!(decode(&out[..out.len() - 1], prefix_bits), Err(CompressionError::Truncated));
            }
        }
        assert_eq!(decode(&[0x1f, 0xff, 0xff, 0xff, 0xff, 0x1f], 5), Err(CompressionError::IntegerTooLarge));
        assert_eq!(
            decode(&[0x1f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], 5),
            Err(CompressionError::IntegerTooLarge)
        );
    }
}
