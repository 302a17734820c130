//! Values that are words, in files, results and on the command line.

/// Values that are words.
pub(crate) trait Words: Copy + PartialEq + 'static {
    /// Words with their values. The first word of a value is the one that is written.
    const WORDS: &'static [(&'static str, Self)];
}

/// Words of a type, for [`Kind::OneOf`](super::Kind).
pub(crate) fn words_of<T: Words>() -> Vec<&'static str> {
    T::WORDS.iter().map(|(word, _)| *word).collect()
}

/// Gives each value of an enum its word, after a semicolon with further words that are read.
macro_rules! words {
    ($type:ident { $($value:ident = $word:literal),+ $(; $($other:literal = $of:ident),+)? }) => {
        impl $type {
            /// Every value, in the order in which results show them.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            /// Name in files and results, and on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }

        impl $crate::keys::words::Words for $type {
            const WORDS: &'static [(&'static str, Self)] =
                &[$(($word, Self::$value)),+ $(, $(($other, Self::$of)),+)?];
        }
    };
}
pub(crate) use words;
