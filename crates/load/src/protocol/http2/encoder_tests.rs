use super::*;
use http2::hpack::{Decoder, FieldReader};

type Field = (&'static str, &'static str);

const GET: [Field; 7] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":authority", "shop.example:8080"),
    (":path", "/cart?id=1"),
    ("user-agent", "meshmeter"),
    ("x-tenant", "seven"),
    ("authorization", "Bearer secret"),
];
const POST: [Field; 6] = [
    (":method", "POST"),
    (":scheme", "http"),
    (":authority", "shop.example:8080"),
    (":path", "/"),
    ("content-length", "17"),
    ("x-other", "field"),
];

struct All(Vec<(Vec<u8>, Vec<u8>)>);

impl FieldReader for All {
    fn wants(&mut self, _: &[u8]) -> bool {
        true
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.0.push((name.to_vec(), value.to_vec()));
    }
}

fn compile(fields: &[Field], dictionary: &mut Dictionary) -> RequestFields {
    let mut compiled = RequestFields::default();
    for (name, value) in fields {
        dictionary.add(name.as_bytes(), value.as_bytes());
    }
    for (name, value) in fields {
        compiled.push(name.as_bytes(), value.as_bytes(), dictionary);
    }
    compiled
}

/// Encodes a request, checks it with a decoder, and returns the length of the block.
fn sent(encoder: &mut Encoder, compiled: &RequestFields, peer: &mut Decoder, expected: &[Field]) -> usize {
    let mut block = Vec::new();
    encoder.encode(compiled, Values::default(), &mut block);
    let mut all = All(Vec::new());
    peer.decode(&block, &mut all).expect("a block that can be read");
    let expected: Vec<_> =
        expected.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
    assert_eq!(all.0, expected);
    block.len()
}

#[test]
fn constant_fields_take_one_byte_each_from_second_request() {
    let mut dictionary = Dictionary::default();
    let (get, post) = (compile(&GET, &mut dictionary), compile(&POST, &mut dictionary));
    let (mut encoder, mut peer) = (Encoder::new(&dictionary), Decoder::default());
    let first = sent(&mut encoder, &get, &mut peer, &GET);
    sent(&mut encoder, &post, &mut peer, &POST);
    let again = sent(&mut encoder, &get, &mut peer, &GET);
    // Method, scheme, authority, user agent, tenant; path and credentials as literals.
    assert!(again <= 5 + 10 + 13, "{again} bytes");
    assert!(first > again + 20, "{first} bytes at first, {again} again");
    assert_eq!(sent(&mut encoder, &get, &mut peer, &GET), again);
    // A new connection starts with an empty table.
    encoder.reset();
    assert_eq!(sent(&mut encoder, &get, &mut Decoder::default(), &GET), first);
}

#[test]
fn smaller_table_of_peer_is_announced_and_used() {
    for limit in [0, 60, 4095, 4096, 10_000] {
        let mut dictionary = Dictionary::default();
        let (get, post) = (compile(&GET, &mut dictionary), compile(&POST, &mut dictionary));
        let (mut encoder, mut peer) = (Encoder::new(&dictionary), Decoder::default());
        sent(&mut encoder, &get, &mut peer, &GET);
        encoder.limit(limit);
        for _ in 0..3 {
            sent(&mut encoder, &post, &mut peer, &POST);
            sent(&mut encoder, &get, &mut peer, &GET);
        }
    }
}

#[test]
fn dictionary_never_overflows_table() {
    let mut dictionary = Dictionary::default();
    let mut compiled = RequestFields::default();
    let value = "v".repeat(100);
    for number in 0..100 {
        let name = format!("x-{number}");
        dictionary.add(name.as_bytes(), value.as_bytes());
        compiled.push(name.as_bytes(), value.as_bytes(), &dictionary);
    }
    assert!(dictionary.bytes <= DEFAULT_TABLE_BYTES && dictionary.fields.len() > 20, "{}", dictionary.bytes);
    let (mut encoder, mut peer) = (Encoder::new(&dictionary), Decoder::default());
    for _ in 0..3 {
        let mut block = Vec::new();
        encoder.encode(&compiled, Values::default(), &mut block);
        let mut all = All(Vec::new());
        peer.decode(&block, &mut all).expect("a block that can be read");
        assert_eq!(all.0.len(), 100);
        assert!(all.0.iter().all(|(_, its)| its == value.as_bytes()));
    }
}

#[test]
fn numbers_fill_placeholders_of_paths_of_any_length() {
    let dictionary = Dictionary::default();
    for padding in [0, 100, 119, 120, 121, 400] {
        let path = format!("/{}/get/{{1..100}}", "x".repeat(padding));
        let mut compiled = RequestFields::default();
        compiled.push_varying(b":path", &Text::parse(&path).unwrap());
        compiled.push(b":method", b"GET", &dictionary);
        let (mut encoder, mut peer) = (Encoder::new(&dictionary), Decoder::default());
        for number in [7, 100] {
            let mut block = Vec::new();
            encoder.encode(&compiled, [number].as_slice().into(), &mut block);
            let mut all = All(Vec::new());
            peer.decode(&block, &mut all).expect("a block that can be read");
            let expected = path.replace("{1..100}", &number.to_string());
            assert_eq!(all.0[0], (b":path".to_vec(), expected.into_bytes()));
            assert_eq!(all.0[1], (b":method".to_vec(), b"GET".to_vec()));
        }
    }
    let mut constant = RequestFields::default();
    constant.push(b":path", b"/", &dictionary);
    let mut block = Vec::new();
    Encoder::new(&dictionary).encode(&constant, Values::default(), &mut block);
    assert_eq!(block, [0x84], "in the static table");
}

#[test]
fn cookies_of_a_session_are_a_field_that_is_never_indexed() {
    let mut dictionary = Dictionary::default();
    let mut compiled = compile(&GET[..4], &mut dictionary);
    compiled.push_cookies();
    let (mut encoder, mut peer) = (Encoder::new(&dictionary), Decoder::default());
    sent(&mut encoder, &compiled, &mut peer, &GET[..4]);
    for cookies in ["a=1; b=2", "a=2"] {
        let (mut block, mut all) = (Vec::new(), All(Vec::new()));
        encoder.encode(&compiled, Values { cookies: cookies.as_bytes(), ..Values::default() }, &mut block);
        peer.decode(&block, &mut all).expect("a block that can be read");
        assert_eq!(
            (all.0.len(), all.0.last()),
            (5, Some(&(b"cookie".to_vec(), cookies.as_bytes().to_vec())))
        );
    }
}
