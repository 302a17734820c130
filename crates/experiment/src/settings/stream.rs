//! A load whose responses are streams of tokens, as of a language model: what is asked, and when the service sends its tokens.

use crate::keys::Kind;
use crate::keys::settings::keys;
use crate::topology::distribution::Times;
use results::StreamLoad;
use serde_json::json;
use std::time::Duration;

/// Path of chat completions, as in OpenAI's API.
pub const CHAT_PATH: &str = "/v1/chat/completions";

/// Maximum number of tokens of an answer.
pub const MAX_TOKENS: u64 = 100_000;

/// Minimum size of a prompt: its JSON without a question has less.
const MIN_PROMPT_BYTES: u64 = 256;
/// Maximum size of a prompt: workers of a cluster receive it in one message.
pub(crate) const MAX_PROMPT_BYTES: u64 = 1 << 20;
/// Maximum mean pause of a client.
const MAX_PAUSE: Duration = Duration::from_secs(3600);

/// The section `load.stream`.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSettings {
    /// True if the experiment has the section, be it empty. Without it, responses are not streams.
    pub declared: bool,
    /// Size of the body of each request.
    pub prompt_bytes: u64,
    /// Tokens of each response.
    pub tokens: usize,
    /// From a request's arrival at the service to its first token.
    pub first: Times,
    /// From one token to the next. The schedule is absolute: late tokens move no later ones.
    pub gap: Times,
    /// Closed loop: mean of the exponentially distributed times from the end of a response to the client's next request.
    pub pause: Duration,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            declared: false,
            prompt_bytes: 2000,
            tokens: 20,
            first: Times::fixed(Duration::from_millis(50)),
            gap: Times::fixed(Duration::from_millis(20)),
            pause: Duration::ZERO,
        }
    }
}

/// A time, or a distribution of times.
const TIMES: Kind = Kind::Either(&[
    Kind::Duration,
    Kind::Matching(|| r"^\s*(exp:|uniform:.+\.\.|log-normal:.+\.\.).+$".to_owned()),
]);

keys!(StreamSettings {
    key prompt_bytes: "prompt", Kind::SizeFor("the JSON of a chat completion", MIN_PROMPT_BYTES),
        "size of each request's body, up to 1MiB";
    key tokens: "tokens", Kind::Whole(1, MAX_TOKENS), "tokens of each response, an event each";
    key first: "first" as "first token after", TIMES, "time from the request to its first token at the service";
    key gap: "gap" as "token gap", TIMES, "time from one token to the next at the service";
    key pause: "pause", Kind::DurationUpTo(MAX_PAUSE),
        "closed loop: mean time from the end of a response to the client's next request, exponentially distributed";
});

impl StreamSettings {
    /// The load of a cell, if it has streams.
    pub(crate) fn load(&self) -> Option<StreamLoad> {
        self.declared.then(|| StreamLoad {
            prompt_bytes: self.prompt_bytes,
            tokens: self.tokens,
            first: self.first.to_string(),
            gap: self.gap.to_string(),
            pause_s: self.pause.as_secs_f64(),
        })
    }

    /// Mean time from a request to the last token of its response.
    pub(crate) fn mean_length_s(&self) -> f64 {
        self.first.0.mean() + self.gap.0.mean() * self.tokens.saturating_sub(1) as f64
    }
}

/// Query of the URL with the schedule of a stream's tokens (docs/service.md).
pub(crate) fn query(stream: &StreamLoad) -> String {
    format!("first={}&gap={}", stream.first, stream.gap)
}

/// Body of a request for a stream of tokens with usage at its end: exactly as long as the prompt shall be.
#[must_use]
pub fn chat_request(stream: &StreamLoad) -> Vec<u8> {
    let body = |question: &str| {
        json!({
            "model": "meshmeter",
            "messages": [{"role": "user", "content": question}],
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": stream.tokens,
        })
        .to_string()
    };
    let filler = usize::try_from(stream.prompt_bytes).unwrap_or(usize::MAX).saturating_sub(body("").len());
    let question: String = "what does a mesh add to a token? ".chars().cycle().take(filler).collect();
    body(&question).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_as_long_as_its_prompt() {
        for prompt_bytes in [MIN_PROMPT_BYTES, 2000, 220_000] {
            let settings =
                StreamSettings { declared: true, prompt_bytes, tokens: 100_000, ..StreamSettings::default() };
            let request = chat_request(&settings.load().unwrap());
            assert_eq!(request.len() as u64, prompt_bytes);
            let request: serde_json::Value = serde_json::from_slice(&request).unwrap();
            assert_eq!((&request["stream"], &request["max_tokens"]), (&json!(true), &json!(100_000)));
        }
    }
}
