//! Peer: the encodings that PyMongo 4.20 writes for the same documents.

use super::*;
use proptest::prelude::*;

const FIND: &str = "5f0000000266696e640008000000666c6967687473000366696c7465720014000000025f696400060000003632302d370000106c69\
    6d697400010000000873696e676c654261746368000102246462000a0000006d6573686d657465720000";
const MIXED: &str = "4c000000075f6964000102030405060708090a0b0c0176616c756500000000000000d03f126e00feffffffffffffff04696473001700\
    00000230000200000061000231000200000062000000";
/// Every type that is skipped, then `ok: 1.0`.
const SKIPPED: &str = "a10000000562696e6172790003000000000102030a6e756c6c0009646174650000404d1aa20100000b7265676578005e610069000d\
    636f6465000200000078000f73636f70656400160000000200000078000c00000010790001000000001174696d657374616d700002000000010000001364\
    6563696d616c000f000000000000000000000000003e30ff6d696e007f6d617800016f6b00000000000000f03f00";

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn fields(encoded: &[u8]) -> Result<Vec<(&str, Value<'_>)>, Malformed> {
    Fields::new(encoded)?.collect()
}

#[test]
fn documents_are_encoded_as_by_a_peer() {
    let filter = Document::new().with("_id", Value::String("620-7"));
    let find = Document::new()
        .with("find", Value::String("flights"))
        .with("filter", Value::Document(filter.as_bytes()))
        .with("limit", Value::Int32(1))
        .with("singleBatch", Value::Boolean(true))
        .with("$db", Value::String("meshmeter"));
    assert_eq!(find.as_bytes(), hex(FIND));
    let ids = Document::array([Value::String("a"), Value::String("b")]);
    let mixed = Document::new()
        .with("_id", Value::ObjectId([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]))
        .with("value", Value::Double(0.25))
        .with("n", Value::Int64(-2))
        .with("ids", Value::Array(ids.as_bytes()));
    assert_eq!(mixed.as_bytes(), hex(MIXED));
}

#[test]
fn documents_of_a_peer_are_read() {
    let filter = Document::new().with("_id", Value::String("620-7"));
    let expected = [
        ("find", Value::String("flights")),
        ("filter", Value::Document(filter.as_bytes())),
        ("limit", Value::Int32(1)),
        ("singleBatch", Value::Boolean(true)),
        ("$db", Value::String("meshmeter")),
    ];
    assert_eq!(fields(&hex(FIND)).unwrap(), expected);
    let skipped = hex(SKIPPED);
    let (last, others) = fields(&skipped).map(|mut fields| (fields.pop(), fields)).unwrap();
    assert_eq!(last, Some(("ok", Value::Double(1.0))));
    let names: Vec<&str> = others.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        ["binary", "null", "date", "regex", "code", "scoped", "timestamp", "decimal", "min", "max"]
    );
    assert!(others.iter().all(|(_, value)| *value == Value::Other), "{others:?}");
}

#[test]
fn malformed_documents_are_refused() {
    for (encoded, reason) in [
        ("", "another length"),
        ("0500000001", "does not end with a zero byte"),
        ("0600000000", "another length"),
        ("ffffffff00", "a length is negative"),
        // A string of 2 GiB, one without a terminator, one of length 0, one that is not UTF-8.
        ("0d0000000261 00ffffff7f0000", "ends within a field"),
        ("0e000000026100 02000000 6161 00", "a string does not end"),
        ("0c000000026100 00000000 00", "a string does not end"),
        ("0e000000026100 02000000 ff00 00", "a string is not UTF-8"),
        ("0800000008ff0000", "not UTF-8"),
        ("0900000008610002 00", "neither true nor false"),
        ("080000000a616100", "a name does not end"),
        ("080000002061 0000", "unknown type"),
        // A nested document, and a scope, that say to be longer than the whole or shorter than their length.
        ("0c000000036100 09000000 00", "ends within a field"),
        ("0c0000000f6100 01000000 00", "less than its own size"),
        ("0d000000056100 ffffffff 00 00", "a length is negative"),
    ] {
        let error = fields(&hex(encoded)).unwrap_err().to_string();
        assert!(error.contains(reason), "{encoded}: {error}");
    }
    // Nested documents are checked once they are read.
    let nested = hex("0c000000036100 04000000 00");
    let fields = fields(&nested).unwrap();
    let [(_, Value::Document(nested))] = fields[..] else { panic!("{fields:?}") };
    assert!(Fields::new(nested).is_err());
}

#[test]
fn nesting_costs_no_stack() {
    let mut document = Document::new();
    for _ in 0..10_000 {
        document = Document::new().with("d", Value::Document(document.as_bytes()));
    }
    let mut depth = 0;
    let mut encoded = document.as_bytes();
    while let [(_, Value::Document(nested))] = fields(encoded).unwrap()[..] {
        encoded = nested;
        depth += 1;
    }
    assert_eq!(depth, 10_000);
}

proptest! {
    /// Reading ends, since each field takes at least two bytes.
    #[test]
    fn input_never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 5..200), fits in any::<bool>()) {
        if fits {
            let length = bytes.len() as u32;
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            *bytes.last_mut().unwrap() = 0;
        }
        let read = Fields::new(&bytes).map_or(0, Iterator::count);
        prop_assert!(read <= bytes.len() / 2);
    }

    /// One changed byte anywhere: an error or other values, never a panic.
    #[test]
    fn changed_documents_never_panic(index in any::<prop::sample::Index>(), byte in any::<u8>()) {
        for text in [FIND, MIXED, SKIPPED] {
            let mut bytes = hex(text);
            let index = index.index(bytes.len());
            bytes[index] = byte;
            let _ = fields(&bytes);
        }
    }

    #[test]
    fn written_fields_are_read_back(
        text in "[^\\x00]{0,20}", double in -1e300_f64..1e300, int in any::<i32>(), long in any::<i64>(),
        id in any::<[u8; 12]>(), boolean in any::<bool>(),
    ) {
        let inner = Document::new().with(&text, Value::Int64(long));
        let written = [
            (text.as_str(), Value::String(&text)),
            ("double", Value::Double(double)),
            ("int", Value::Int32(int)),
            ("id", Value::ObjectId(id)),
            ("boolean", Value::Boolean(boolean)),
            ("inner", Value::Document(inner.as_bytes())),
            ("list", Value::Array(inner.as_bytes())),
        ];
        let document = written.iter().fold(Document::new(), |document, (name, value)| document.with(name, *value));
        prop_assert_eq!(fields(document.as_bytes()).unwrap(), written);
    }
}
