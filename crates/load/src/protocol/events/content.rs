//! Data of events: whether it carries content. Data of any form is content, except in the streams of language models,
//! where frames without tokens surround the tokens. Three forms are known: OpenAI's chat completions and completions
//! (`choices`), OpenAI's responses (`type: response.…`) and Anthropic's messages (`type: content_block_delta` and others).

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::borrow::Cow;

/// Kinds of data.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// None.
    Empty,
    Content,
    /// A frame of a stream of tokens without any: a role, the reason for its end, usage, an error.
    Control,
    /// `[DONE]`, which ends a stream of `choices`.
    Done,
}

/// Types of Anthropic's frames other than those with tokens.
const CONTROL_TYPES: [&str; 5] =
    ["content_block_start", "content_block_stop", "message_delta", "message_start", "message_stop"];

/// Types of the last frame of Anthropic's messages, and of OpenAI's responses.
const ENDS: [&str; 4] = ["message_stop", "response.completed", "response.failed", "response.incomplete"];

/// Fields of a delta that hold tokens; its others are the role, or say what follows.
const TOKEN_FIELDS: [&str; 10] = [
    "audio",
    "content",
    "function_call",
    "partial_json",
    "reasoning",
    "reasoning_content",
    "refusal",
    "text",
    "thinking",
    "tool_calls",
];

/// The kind of these data, and what they say of the end of a stream of tokens: true if a frame that ends it is still to come, false
/// if they are that frame, `None` if neither.
pub(super) fn kind(data: &[u8]) -> (Kind, Option<bool>) {
    match data.trim_ascii() {
        _ if data.is_empty() => (Kind::Empty, None),
        b"[DONE]" => (Kind::Done, Some(false)),
        text @ [b'{', ..] => {
            serde_json::from_slice(text).map_or((Kind::Content, None), |frame| of_frame(&frame))
        }
        _ => (Kind::Content, None),
    }
}

fn of_frame(frame: &Frame<'_>) -> (Kind, Option<bool>) {
    let of = |carries: bool| if carries { Kind::Content } else { Kind::Control };
    let has_tokens = frame.delta.as_ref().is_some_and(has_tokens);
    match (&frame.choices, frame.kind.as_deref()) {
        (Some(choices), _) => (of(choices.iter().any(Choice::has_tokens)), Some(true)),
        (None, Some(kind)) if kind.starts_with("response.") => {
            (of(kind.ends_with(".delta") && has_tokens), Some(!ENDS.contains(&kind)))
        }
        (None, Some("content_block_delta")) => (of(has_tokens), Some(true)),
        (None, Some(kind @ ("ping" | "error"))) => (Kind::Control, (kind == "error").then_some(false)),
        (None, Some(kind)) if CONTROL_TYPES.contains(&kind) => (Kind::Control, Some(!ENDS.contains(&kind))),
        (None, _) => (of(frame.error.is_none()), None),
    }
}

/// A frame of any of the known forms. Other fields are ignored.
#[derive(Deserialize)]
struct Frame<'a> {
    choices: Option<Vec<Choice>>,
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    delta: Option<Value>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Value>,
    /// Of completions, which have no `delta`.
    text: Option<Value>,
}

impl Choice {
    fn has_tokens(&self) -> bool {
        self.text.as_ref().is_some_and(is_filled) || self.delta.as_ref().is_some_and(has_tokens)
    }
}

/// True for a part of an answer with tokens: a text, or an object with one.
fn has_tokens(delta: &Value) -> bool {
    match delta {
        Value::Object(fields) => TOKEN_FIELDS.iter().any(|name| fields.get(*name).is_some_and(is_filled)),
        Value::String(text) => !text.is_empty(),
        _ => false,
    }
}

fn is_filled(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}
