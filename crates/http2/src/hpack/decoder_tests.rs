use super::*;
use proptest::prelude::*;

/// Collects every field.
#[derive(Default)]
struct All(Vec<(String, String)>);

impl FieldReader for All {
    fn wants(&mut self, _: &[u8]) -> bool {
        true
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.0.push((text(name), text(value)));
    }
}

/// Collects the values of one field.
struct Only<'a>(&'a [u8], Vec<Vec<u8>>);

impl FieldReader for Only<'_> {
    fn wants(&mut self, name: &[u8]) -> bool {
        name == self.0
    }

    fn field(&mut self, _: &[u8], value: &[u8]) {
        self.1.push(value.to_vec());
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    (0..digits.len())
        .step_by(2)
        .map(|place| u8::from_str_radix(&digits[place..place + 2], 16).unwrap())
        .collect()
}

fn fields(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, CompressionError> {
    let mut all = All::default();
    decoder.decode(block, &mut all).map(|()| all.0)
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

const REQUESTS: [&[(&str, &str)]; 3] = [
    &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")],
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
        ("cache-control", "no-cache"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ],
];

const DATES: [&str; 2] = ["Mon, 21 Oct 2013 20:13:21 GMT", "Mon, 21 Oct 2013 20:13:22 GMT"];
const COOKIE: &str = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

#[test]
fn literals_of_rfc_7541_appendix_c_2() {
    let mut decoder = Decoder::default();
    for (block, expected, entries) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            ("custom-key", "custom-header"),
            1,
        ),
        ("040c 2f73 616d 706c 652f 7061 7468", (":path", "/sample/path"), 1),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", ("password", "secret"), 1),
        ("82", (":method", "GET"), 1),
    ] {
        assert_eq!(fields(&mut decoder, &bytes(block)), Ok(pairs(&[expected])));
        assert_eq!(decoder.entries.len(), entries);
    }
    assert_eq!(decoder.bytes, 55);
}

#[test]
fn requests_of_rfc_7541_appendix_c_3_and_c_4() {
    for blocks in [
        [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ],
        [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ],
    ] {
        let mut decoder = Decoder::default();
        for ((block, expected), size) in blocks.iter().zip(REQUESTS).zip([57, 110, 164]) {
            assert_eq!(fields(&mut decoder, &bytes(block)), Ok(pairs(expected)));
            assert_eq!(decoder.bytes, size);
        }
    }
}

#[test]
fn responses_of_rfc_7541_appendix_c_5_and_c_6_with_eviction() {
    // The RFC uses a table of 256 bytes, which the first block sets here.
    for blocks in [
        [
            "3fe101 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133
             3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "4803 3330 37c1 c0bf",
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738
             666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33
             3630 303b 2076 6572 7369 6f6e 3d31",
        ],
        [
            "3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad
             1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            "4883 640e ffc1 c0bf",
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7
             b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        ],
    ] {
        let expected: [&[(&str, &str)]; 3] = [
            &[
                (":status", "302"),
                ("cache-control", "private"),
                ("date", DATES[0]),
                ("location", "https://www.example.com"),
            ],
            &[
                (":status", "307"),
                ("cache-control", "private"),
                ("date", DATES[0]),
                ("location", "https://www.example.com"),
            ],
            &[
                (":status", "200"),
                ("cache-control", "private"),
                ("date", DATES[1]),
                ("location", "https://www.example.com"),
                ("content-encoding", "gzip"),
                ("set-cookie", COOKIE),
            ],
        ];
        let mut decoder = Decoder::default();
        for ((block, expected), size) in blocks.iter().zip(expected).zip([222, 222, 215]) {
            assert_eq!(fields(&mut decoder, &bytes(block)), Ok(pairs(expected)));
            assert_eq!(decoder.bytes, size);
        }
    }
}

#[test]
fn unwanted_values_are_skipped_but_added_to_table() {
    let mut decoder = Decoder::default();
    let mut reader = Only(b"x", Vec::new());
    // `a: 1` is added to the table, `x: 2` is not, `a` again by index, `x` with a literal name.
    let block = [&b"\x40\x01a\x011"[..], b"\x00\x01x\x012", b"\xbe", b"\x10\x01x\x013"].concat();
    decoder.decode(&block, &mut reader).unwrap();
    assert_eq!(reader.1, [b"2", b"3"]);
    assert_eq!(fields(&mut decoder, b"\xbe"), Ok(pairs(&[("a", "1")])));
}

#[test]
fn invalid_blocks_are_rejected() {
    use CompressionError::{IntegerTooLarge, InvalidHuffmanCode, InvalidTableSize, Truncated, UnknownEntry};
    for (block, error, why) in [
        (&b"\x80"[..], UnknownEntry, "index 0"),
        (b"\xbe", UnknownEntry, "an index beyond the tables"),
        (b"\xff\xff\xff\xff\xff\x7f", IntegerTooLarge, "an index beyond everything"),
        (b"\x7e\x01a", UnknownEntry, "a name beyond the tables"),
        (b"\x40\x05abc", Truncated, "a name that is cut short"),
        (b"\x40\x01a\x05b", Truncated, "a value that is cut short"),
        (b"\x40\x01a", Truncated, "no value"),
        (b"\x3f\xe2\x1f", InvalidTableSize, "a table larger than announced"),
        (b"\x82\x20", InvalidTableSize, "a size that does not open its block"),
        (b"\x40\x81\x00\x011", InvalidHuffmanCode, "bad padding in a name"),
    ] {
        assert_eq!(fields(&mut Decoder::default(), block), Err(error), "{why}");
    }
}

#[test]
fn entry_larger_than_table_empties_it() {
    let mut decoder = Decoder::default();
    fields(&mut decoder, b"\x40\x01a\x011").unwrap();
    // 40 bytes of table; then an entry of 34 bytes, one of 44, and a reference to the first, which is gone.
    fields(&mut decoder, b"\x3f\x09\x40\x01a\x011").unwrap();
    assert_eq!((decoder.entries.len(), decoder.bytes), (1, 34));
    fields(&mut decoder, b"\x40\x01b\x0b12345678901").unwrap();
    assert_eq!((decoder.entries.len(), decoder.bytes), (0, 0));
    assert_eq!(fields(&mut decoder, b"\xbe"), Err(CompressionError::UnknownEntry));
}

/// A client that announced a table of size zero keeps no state between blocks.
#[test]
fn table_of_size_zero_rejects_entries_and_resize() {
    let decode = |block: &[u8]| fields(&mut Decoder::with_table_bytes(0), block);
    assert_eq!(decode(b"\x20\x88\x40\x01a\x011"), Ok(pairs(&[(":status", "200"), ("a", "1")])));
    assert_eq!(decode(b"\x40\x01a\x011\xbe"), Err(CompressionError::UnknownEntry));
    assert_eq!(decode(b"\x21"), Err(CompressionError::InvalidTableSize));
}

#[test]
fn plain_literals_are_decoded() {
    let mut block = Vec::new();
    let long = "x".repeat(300);
    super::super::encode_literal(b"grpc-status", b"14", &mut block);
    super::super::encode_literal(b"grpc-message", long.as_bytes(), &mut block);
    let expected = pairs(&[("grpc-status", "14"), ("grpc-message", &long)]);
    assert_eq!(fields(&mut Decoder::default(), &block), Ok(expected));
}

proptest! {
    #[test]
    fn arbitrary_blocks_do_not_panic_and_table_stays_within_size(
        blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..30),
    ) {
        let mut decoder = Decoder::default();
        for block in blocks {
            let _ = fields(&mut decoder, &block);
            let counted: usize = decoder.entries.iter().map(|entry| entry_bytes(&entry.text, &[])).sum();
            prop_assert_eq!(counted, decoder.bytes);
            prop_assert!(decoder.bytes <= decoder.capacity);
        }
    }
}
