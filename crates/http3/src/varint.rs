//! Integers of variable length (RFC 9000, section 16).

/// Largest value.
pub const MAX: u64 = (1 << 62) - 1;
/// Longest encoding, bytes.
pub const MAX_BYTES: usize = 8;

/// Decodes the integer at the start of `bytes`. Also returns its encoded size; `None` if there is more of it to come.
#[must_use]
#[inline]
pub fn decode(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let rest = bytes.get(1..length)?;
    let value = rest.iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
    Some((value, length))
}

/// Appends an integer, which must be at most [`MAX`], in its shortest form.
#[inline]
pub fn encode(value: u64, out: &mut Vec<u8>) {
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(0x4000 | value as u16).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(0x8000_0000 | value as u32).to_be_bytes()),
        _ => {
            debug_assert!(value <= MAX, "{value} is no variable-length integer");
            out.extend_from_slice(&(0xc000_0000_0000_0000 | value).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_rfc_9000_appendix_a_1() {
        for (encoded, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(decode(encoded), Some((value, encoded.len())));
            let mut out = Vec::new();
            encode(value, &mut out);
            assert_eq!(out, encoded);
            assert_eq!(decode(&encoded[..encoded.len() - 1]), None);
        }
        assert_eq!(decode(&[0x40, 0x25]), Some((37, 2)), "longer than necessary");
    }

    #[test]
    fn integers_round_trip() {
        for value in [0, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, MAX] {
            let mut out = Vec::new();
            encode(value, &mut out);
            assert_eq!(decode(&out), Some((value, out.len())));
        }
    }
}
