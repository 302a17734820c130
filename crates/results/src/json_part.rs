//! Parts of JSON texts as they stand: a number keeps its digits, an object its order.

use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;

/// The part that a JSON pointer (RFC 6901) names: the text of a string, anything else as it stands, without white space. `None` if
/// there is nothing, or a string that is not Unicode.
///
/// # Errors
/// Returns an error if the text is not one JSON value.
pub fn json_part<'a>(json: &'a [u8], pointer: &str) -> Result<Option<Cow<'a, str>>, serde_json::Error> {
    let part = at(serde_json::from_slice::<&RawValue>(json)?, pointer).map(RawValue::get);
    Ok(part.and_then(|part| match part.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<Cow<'a, str>>(part).ok(),
        Some(b'{' | b'[') => Some(compact(part).into()),
        _ => Some(part.into()),
    }))
}

fn at<'a>(whole: &'a RawValue, pointer: &str) -> Option<&'a RawValue> {
    pointer.split('/').skip(1).try_fold(whole, |value, token| {
        let text = value.get();
        match text.as_bytes().first()? {
            b'{' => {
                let mut entries: HashMap<String, &RawValue> = serde_json::from_str(text).ok()?;
                entries.remove(&token.replace("~1", "/").replace("~0", "~"))
            }
            b'[' => {
                let is_index = token == "0" || !token.starts_with(['0', '+']);
                let index: usize = token.parse().ok().filter(|_| is_index)?;
                serde_json::from_str::<Vec<&RawValue>>(text).ok()?.get(index).copied()
            }
            _ => None,
        }
    })
}

/// JSON without white space between its tokens.
fn compact(json: &str) -> String {
    let (mut is_in_string, mut is_escaped) = (false, false);
    let keeps = |character: &char| {
        let keeps = is_in_string || !character.is_ascii_whitespace();
        if *character == '"' && !is_escaped {
            is_in_string = !is_in_string;
        }
        is_escaped = *character == '\\' && !is_escaped;
        keeps
    };
    json.chars().filter(keeps).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stay_as_they_stand() {
        let json = br#" {"n": 12345678901234567890123, "d": [1.10, 1E3, -0, 0.1000000000000000055], "t": "a \"\u00fc\" \\",
            "o": {"b": 1, "a": [ "x \" y" , 2 ]}, "": true, "a/b": {"~": null}, "twice": 1, "twice": 2} "#;
        for (pointer, part) in [
            ("/n", "12345678901234567890123"),
            ("/d/0", "1.10"),
            ("/d/1", "1E3"),
            ("/d/2", "-0"),
            ("/d/3", "0.1000000000000000055"),
            ("/t", "a \"ü\" \\"),
            ("/o", r#"{"b":1,"a":["x \" y",2]}"#),
            ("/", "true"),
            ("/a~1b/~0", "null"),
            ("/twice", "2"),
        ] {
            assert_eq!(json_part(json, pointer).unwrap().as_deref(), Some(part), "{pointer}");
        }
        for pointer in ["/x", "/n/0", "/d/4", "/d/00", "/d/+1", "/d/-", "/d/-1", "/t/0"] {
            assert_eq!(json_part(json, pointer).unwrap(), None, "{pointer}");
        }
        assert_eq!(json_part(b"7", "").unwrap().as_deref(), Some("7"));
        assert_eq!(json_part(br#"["\ud800"]"#, "/0").unwrap(), None);
        for bad in ["", "{", "1 2", "nan"] {
            assert!(json_part(bad.as_bytes(), "").is_err(), "{bad}");
        }
    }
}
