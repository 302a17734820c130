//! Huffman code of header strings (RFC 7541, section 5.2 and appendix B).
//!
//! The code is canonical: codes of one length count upwards in symbol order, and each length starts where the
//! shorter ones end. So the lengths define the code, and the tables below are computed from them at compile
//! time.

use super::CompressionError;

/// End of string (EOS): must not occur in a string. Its first bits pad the last byte.
const END: u16 = 256;
const SYMBOLS: usize = 257;
const MAX_BITS: usize = 30;
/// Codes up to this length are looked up directly: letters, digits and most other header characters.
const SHORT_BITS: usize = 8;

/// Code length of each symbol, bits.
#[rustfmt::skip]
const BITS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// Code tables, computed from the lengths.
struct Code {
    /// Code of each symbol, right-aligned.
    codes: [u32; SYMBOLS],
    /// Symbols in code order.
    symbols: [u16; SYMBOLS],
    /// Per length: first code, and index of its symbol in `symbols`.
    first: [(u32, usize); MAX_BITS + 2],
    /// Per first byte: symbol whose code it starts with, and the length of the code; 0 bits if the code is
    /// longer.
    short: [(u8, u8); 1 << SHORT_BITS],
}

static CODE: Code = Code::new();

impl Code {
    const fn new() -> Self {
        let mut code = Self {
            codes: [0; SYMBOLS],
            symbols: [0; SYMBOLS],
            first: [(0, 0); MAX_BITS + 2],
            short: [(0, 0); 1 << SHORT_BITS],
        };
        let (mut next, mut place, mut bits) = (0_u32, 0, 1);
        while bits <= MAX_BITS {
            code.first[bits] = (next, place);
            let mut symbol = 0;
            while symbol < SYMBOLS {
                if BITS[symbol] as usize == bits {
                    code.codes[symbol] = next;
                    code.symbols[place] = symbol as u16;
                    if bits <= SHORT_BITS {
                        code.fill_short(symbol, next, bits);
                    }
                    next += 1;
                    place += 1;
                }
                symbol += 1;
            }
            next <<= 1;
            bits += 1;
        }
        code.first[MAX_BITS + 1] = (next, place);
        code
    }

    const fn fill_short(&mut self, symbol: usize, code: u32, bits: usize) {
        let spare = SHORT_BITS - bits;
        let mut byte = (code as usize) << spare;
        let end = byte + (1 << spare);
        while byte < end {
            self.short[byte] = (symbol as u8, bits as u8);
            byte += 1;
        }
    }

    /// Decodes a code longer than 8 bits at the start of `window` (left-aligned); returns symbol and length.
    fn long(&self, window: u64) -> (u16, usize) {
        for bits in SHORT_BITS + 1..MAX_BITS {
            let (first, place) = self.first[bits];
            let (_, next_place) = self.first[bits + 1];
            let offset = ((window >> (64 - bits)) as u32).wrapping_sub(first) as usize;
            if offset < next_place - place {
                return (self.symbols[place + offset], bits);
            }
        }
        // The code is complete: if no shorter code matches, it is one of these.
        let (first, place) = self.first[MAX_BITS];
        let offset = ((window >> (64 - MAX_BITS)) as u32).wrapping_sub(first) as usize;
        (self.symbols.get(place + offset).copied().unwrap_or(END), MAX_BITS)
    }
}

/// Appends the decoded string to `out`.
pub(super) fn decode(encoded: &[u8], out: &mut Vec<u8>) -> Result<(), CompressionError> {
    let mut bytes = encoded.iter();
    // Bits not yet decoded, left-aligned, and their number.
    let (mut window, mut held) = (0_u64, 0_usize);
    loop {
        while held <= 56 {
            let Some(byte) = bytes.next() else { break };
            window |= u64::from(*byte) << (56 - held);
            held += 8;
        }
        let (short, short_bits) = CODE.short[(window >> 56) as usize];
        let (symbol, bits) = match short_bits {
            0 => CODE.long(window),
            bits => (u16::from(short), usize::from(bits)),
        };
        if bits > held {
            return ends_well(window, held);
        }
        let byte = u8::try_from(symbol).map_err(|_| CompressionError::InvalidHuffmanCode)?;
        out.push(byte);
        window <<= bits;
        held -= bits;
    }
}

/// Checks the padding: less than a byte, and all ones like the start of EOS.
fn ends_well(window: u64, held: usize) -> Result<(), CompressionError> {
    let ones = window.leading_ones() as usize;
    if held < 8 && ones >= held { Ok(()) } else { Err(CompressionError::InvalidHuffmanCode) }
}

/// Encoded size of `plain`, bytes.
pub(super) fn encoded_bytes(plain: &[u8]) -> usize {
    let bits: usize = plain.iter().map(|byte| usize::from(BITS[usize::from(*byte)])).sum();
    bits.div_ceil(8)
}

/// Appends the encoding of `plain` to `out`.
pub(super) fn encode(plain: &[u8], out: &mut Vec<u8>) {
    let (mut window, mut held) = (0_u64, 0_u32);
    for byte in plain {
        let symbol = usize::from(*byte);
        window = (window << BITS[symbol]) | u64::from(CODE.codes[symbol]);
        held += u32::from(BITS[symbol]);
        while held >= 8 {
            held -= 8;
            out.push((window >> held) as u8);
        }
    }
    if held > 0 {
        out.push(((window << (8 - held)) as u8) | (0xff >> held));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(plain: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(plain, &mut out);
        assert_eq!(out.len(), encoded_bytes(plain));
        out
    }

    fn decoded(encoded: &[u8]) -> Result<Vec<u8>, CompressionError> {
        let mut out = Vec::new();
        decode(encoded, &mut out).map(|()| out)
    }

    #[test]
    fn codes_are_those_of_rfc_7541_appendix_b() {
        // One of each length, and the first and last symbols.
        for (symbol, code) in [
            (0, 0x1ff8),
            (u16::from(b'0'), 0x0),
            (u16::from(b' '), 0x14),
            (u16::from(b'B'), 0x5d),
            (u16::from(b'X'), 0xfc),
            (u16::from(b'!'), 0x3f8),
            (u16::from(b'|'), 0x7fc),
            (u16::from(b'#'), 0xffa),
            (u16::from(b'~'), 0x1ffd),
            (u16::from(b'^'), 0x3ffc),
            (u16::from(b'<'), 0x7ffc),
            (u16::from(b'\\'), 0x7fff0),
            (128, 0xfffe6),
            (161, 0x1fffdd),
            (129, 0x3fffd2),
            (1, 0x7fffd8),
            (9, 0xffffea),
            (199, 0x1ffffec),
            (192, 0x3ffffe0),
            (203, 0x7ffffde),
            (2, 0xfffffe2),
            (10, 0x3ffffffc),
            (END, 0x3fffffff),
        ] {
            assert_eq!(CODE.codes[usize::from(symbol)], code, "symbol {symbol}");
        }
    }

    #[test]
    fn examples_of_rfc_7541_appendix_c() {
        for (plain, code) in [
            (
                &b"www.example.com"[..],
                &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff][..],
            ),
            (b"no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            (b"custom-value", &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf]),
            (b"302", &[0x64, 0x02]),
            (b"307", &[0x64, 0x0e, 0xff]),
            (b"private", &[0xae, 0xc3, 0x77, 0x1a, 0x4b]),
        ] {
            assert_eq!(encoded(plain), code);
            assert_eq!(decoded(code).as_deref(), Ok(plain));
        }
    }

    #[test]
    fn padding_that_is_not_eos_prefix_is_rejected() {
        // `0` is five zeros; then three padding bits that are not all ones.
        assert_eq!(decoded(&[0b0000_0111]).as_deref(), Ok(&b"0"[..]));
        assert_eq!(decoded(&[0b0000_0110]), Err(CompressionError::InvalidHuffmanCode));
        // A whole byte of padding; EOS itself.
        assert_eq!(decoded(&[0b0000_0111, 0xff]), Err(CompressionError::InvalidHuffmanCode));
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff]), Err(CompressionError::InvalidHuffmanCode));
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xfc]), Err(CompressionError::InvalidHuffmanCode));
        assert_eq!(decoded(&[]).as_deref(), Ok(&b""[..]));
    }

    proptest! {
        #[test]
        fn encoded_strings_decode_to_original(plain in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(decoded(&encoded(&plain)), Ok(plain));
        }

        #[test]
        fn decodable_strings_have_unique_encoding(code in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(plain) = decoded(&code) {
                prop_assert_eq!(encoded(&plain), code);
            }
        }
    }
}
