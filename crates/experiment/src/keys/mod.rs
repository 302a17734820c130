//! Keys of experiment and topology files, described once: name, value, meaning, default.
//!
//! The settings of a section describe their keys themselves ([`settings`]). The keys of other maps are in tables,
//! `file/keys` and `topology/file/keys.rs`. The readers take their known keys from both, and `meshmeter schema` prints
//! them as JSON Schema ([`json_schema`]). Checks that involve several keys are not described here; they are in the
//! readers.

pub(crate) mod json_schema;
pub(crate) mod settings;
pub(crate) mod value;
pub(crate) mod words;

use std::time::Duration;

/// A key of a map in a file.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// Short name of the setting in results; absent if [`Self::name`] serves.
    pub(crate) label: Option<&'static str>,
    pub(crate) value: Kind,
    /// Meaning, for people who edit a file.
    pub(crate) summary: &'static str,
    /// Default in the syntax of the file; absent if nothing is assumed or the default depends on other keys.
    pub(crate) default: Option<&'static str>,
    pub(crate) is_required: bool,
}

/// A key with its default in JSON.
pub(crate) struct DescribedKey {
    pub(crate) key: Key,
    pub(crate) default: Option<serde_json::Value>,
}

/// Values that a key accepts.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Any scalar.
    Text,
    /// Text that a regular expression matches.
    Matching(fn() -> String),
    /// Integer in a range.
    Whole(u64, u64),
    Duration,
    /// Duration above 0 and at most [`MAX_RUN_DURATION`].
    PositiveDuration,
    /// Duration up to a maximum.
    DurationUpTo(Duration),
    /// Positive duration of whole milliseconds.
    Milliseconds,
    Size,
    /// Size of at least this many bytes, which a named program needs.
    SizeFor(&'static str, u64),
    Rate,
    Fraction,
    /// CPU cores.
    Cores,
    /// One of several words.
    OneOf(fn() -> Vec<&'static str>),
    /// `true`, `false`, `on` or `off`.
    Switch,
    /// One value, or a list. Not a factor.
    OneOrSeveral(&'static Kind),
    /// One value, or a non-empty list of different ones. Not a factor.
    OneOrDistinct(&'static Kind),
    /// List with at least this many values.
    List(usize, &'static Kind),
    /// Any of several kinds.
    Either(&'static [Kind]),
    /// Map with these keys.
    Map(&'static [Key]),
    /// Map with exactly one of these keys.
    OneKey(&'static [Key]),
    /// Map with keys that match a regular expression and values of this kind.
    MapOf(&'static str, &'static Kind),
    /// Definition with this name: a section of an experiment, or a kind that contains itself.
    Named(&'static str),
}

/// Maximum length of a warm-up, a window and a timeout, in files and on the command line.
pub const MAX_RUN_DURATION: Duration = Duration::from_secs(24 * 3600);

/// Maximum number of values of a factor.
pub(crate) const MAX_VALUES: usize = 100;

/// Words of [`Kind::Switch`].
pub(crate) const SWITCH: [(&str, bool); 4] = [("true", true), ("false", false), ("on", true), ("off", false)];

impl Key {
    pub(crate) const fn new(name: &'static str, value: Kind, summary: &'static str) -> Self {
        Self { name, label: None, value, summary, default: None, is_required: false }
    }

    pub(crate) const fn label(mut self, label: &'static str) -> Self {
        self.label = Some(label);
        self
    }

    pub(crate) const fn default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    pub(crate) const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }
}

/// Names of keys.
pub(crate) const fn names<const N: usize>(keys: &[Key; N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = keys[index].name;
        index += 1;
    }
    names
}
