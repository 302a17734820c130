//! "Did you mean": the known word nearest to an unknown one.

/// Nearest known word, if it differs only by a typo.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing is quadratic in the length, and no known word is this long. Two letters are too short for a
    // typo: `no` is not `on`.
    if word.len() > 64 || word.len() < 3 {
        return None;
    }
    let word = word.to_lowercase().replace('_', "-");
    known
        .into_iter()
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len().max(word.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edit distance by optimal string alignment: insertions, deletions, substitutions and transpositions of
/// neighbours.
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=one.len() {
        for j in 1..=other.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_find_nearest_word_and_others_none() {
        let known = ["sidecar", "gateway", "none", "on", "access-log"];
        for (word, expected) in [
            ("sidcar", Some("sidecar")),
            ("gatewya", Some("gateway")),
            ("Sidecar", Some("sidecar")),
            ("access_log", Some("access-log")),
            ("quantum", None),
            ("", None),
            ("no", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }
}
