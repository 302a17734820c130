//! Header compression as far as one gRPC stream needs it (RFC 7541).
//!
//! Requests are written without compression. The dynamic table is refused by our settings, so that a server must send each
//! field as a literal or by the static table; of the latter only `:status` matters here.

use super::super::ending::{Ending, EndingKind};

const MAX_STRING_BYTES: usize = 64 * 1024;
const STATIC_ENTRIES: usize = 61;
/// Statuses of the static table, from index 8.
const STATUSES: [&[u8]; 7] = [b"200", b"204", b"206", b"304", b"400", b"404", b"500"];
const FIRST_STATUS: usize = 8;

/// Adds a field without indexing and without Huffman coding.
pub(super) fn encode(name: &str, value: &str, out: &mut Vec<u8>) {
    out.push(0);
    for text in [name, value] {
        encode_integer(text.len(), 7, 0, out);
        out.extend_from_slice(text.as_bytes());
    }
}

fn encode_integer(value: usize, prefix_bits: u8, first: u8, out: &mut Vec<u8>) {
    let max = (1_usize << prefix_bits) - 1;
    if value < max {
        out.push(first | value as u8);
        return;
    }
    out.push(first | max as u8);
    let mut rest = value - max;
    while rest >= 128 {
        out.push(rest as u8 | 128);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Calls `take` with name and value of each field of a block; fields of the static table other than `:status` are left out.
pub(super) fn decode(mut block: &[u8], mut take: impl FnMut(&[u8], &[u8])) -> Result<(), Ending> {
    let (mut name, mut value) = (Vec::new(), Vec::new());
    while let Some(first) = block.first().copied() {
        if first & 0x80 != 0 {
            let index = integer(&mut block, 7)?;
            if let Some(status) = index.checked_sub(FIRST_STATUS).and_then(|index| STATUSES.get(index)) {
                take(b":status", status);
            } else if index == 0 || index > STATIC_ENTRIES {
                return Err(violation("a reference into the dynamic table, which was refused"));
            }
            continue;
        }
        if first & 0xe0 == 0x20 {
            integer(&mut block, 5)?;
            continue;
        }
        let index = integer(&mut block, if first & 0x40 != 0 { 6 } else { 4 })?;
        name.clear();
        match index {
            0 => string(&mut block, &mut name)?,
            FIRST_STATUS..15 => name.extend_from_slice(b":status"),
            1..=STATIC_ENTRIES => {}
            _ => return Err(violation("a name of the dynamic table, which was refused")),
        }
        value.clear();
        string(&mut block, &mut value)?;
        if !name.is_empty() {
            take(&name, &value);
        }
    }
    Ok(())
}

fn violation(detail: &str) -> Ending {
    Ending::new(EndingKind::Http2Violation, format!("header compression: {detail}"))
}

fn next(block: &mut &[u8]) -> Result<u8, Ending> {
    let (first, rest) = block.split_first().ok_or_else(|| violation("a field is cut short"))?;
    *block = rest;
    Ok(*first)
}

fn integer(block: &mut &[u8], prefix_bits: u8) -> Result<usize, Ending> {
    let max = (1_usize << prefix_bits) - 1;
    let mut value = usize::from(next(block)?) & max;
    if value < max {
        return Ok(value);
    }
    for shift in [0, 7, 14] {
        let byte = next(block)?;
        value += usize::from(byte & 127) << shift;
        if byte & 128 == 0 {
            return Ok(value);
        }
    }
    Err(violation("a length is too large"))
}

fn string(block: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Ending> {
    let huffman = block.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer(block, 7)?;
    if length > MAX_STRING_BYTES {
        return Err(violation("a string is too large"));
    }
    let (text, rest) = block.split_at_checked(length).ok_or_else(|| violation("a string is cut short"))?;
    *block = rest;
    if huffman {
        return decode_huffman(text, out);
    }
    out.extend_from_slice(text);
    Ok(())
}

const SYMBOLS: usize = 257;
const MAX_BITS: usize = 30;
const END_OF_STRING: usize = 256;

/// Bits of each symbol's code (appendix B). The code is canonical: these lengths define it.
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

/// Per length, symbols with a code of that length: in the order of their codes.
fn symbols_of(bits: usize) -> impl Iterator<Item = usize> {
    (0..SYMBOLS).filter(move |symbol| usize::from(BITS[*symbol]) == bits)
}

/// Decodes bit by bit: headers and trailers come once per connection.
fn decode_huffman(text: &[u8], out: &mut Vec<u8>) -> Result<(), Ending> {
    let bits = text.iter().flat_map(|byte| (0..8).rev().map(move |shift| byte >> shift & 1));
    // The first code of the present length, the code read so far, and its length.
    let (mut first, mut code, mut length) = (0_usize, 0_usize, 0);
    for bit in bits {
        code = code << 1 | usize::from(bit);
        first <<= 1;
        length += 1;
        let count = symbols_of(length).count();
        if code < first + count {
            let symbol = symbols_of(length).nth(code - first).unwrap_or(END_OF_STRING);
            out.push(u8::try_from(symbol).map_err(|_| violation("an end of string inside a string"))?);
            (first, code, length) = (0, 0, 0);
            continue;
        }
        first += count;
        if length == MAX_BITS {
            return Err(violation("an unknown code"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(block: &[u8]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        decode(block, |name, value| {
            fields.push((String::from_utf8_lossy(name).into(), String::from_utf8_lossy(value).into()));
        })
        .unwrap();
        fields
    }

    #[test]
    fn fields_are_read_as_they_were_written() {
        let mut block = vec![0x20, 0x88];
        let long = "x".repeat(300);
        encode("grpc-status", "14", &mut block);
        encode("grpc-message", &long, &mut block);
        let expected = [(":status", "200"), ("grpc-status", "14"), ("grpc-message", &long)];
        assert_eq!(fields(&block), expected.map(|(name, value)| (name.into(), value.into())));
    }

    /// RFC 7541, C.4.1 and C.6.1: strings with Huffman coding.
    #[test]
    fn huffman_coded_strings_are_decoded() {
        let mut host = Vec::new();
        decode_huffman(&[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff], &mut host)
            .unwrap();
        assert_eq!(host, b"www.example.com");
        let mut status = Vec::new();
        decode_huffman(&[0x64, 0x02], &mut status).unwrap();
        assert_eq!(status, b"302");
    }

    #[test]
    fn blocks_that_break_the_rules_are_violations() {
        for block in
            [&[0xbe][..], &[0x7e, 1, b'a'], &[0, 5, b'a'], &[0x80], &[0, 0x7f, 0xff, 0xff, 0xff, 0xff]]
        {
            assert_eq!(decode(block, |_, _| ()).unwrap_err().kind, EndingKind::Http2Violation, "{block:x?}");
        }
    }
}
