//! Values of options that are words.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Parser of one word per value.
pub(super) fn one_of<T: Clone + Send + Sync + 'static>(
    values: impl IntoIterator<Item = (PossibleValue, T)>,
) -> impl TypedValueParser<Value = T> {
    let (words, values): (Vec<PossibleValue>, Vec<T>) = values.into_iter().unzip();
    PossibleValuesParser::new(words.clone()).map(move |given| {
        let place = words.iter().position(|word| word.matches(&given, false));
        values[place.expect("clap takes these words only")].clone()
    })
}

/// A word with its help.
pub(super) fn word(name: &'static str, help: &'static str) -> PossibleValue {
    PossibleValue::new(name).help(help)
}
