//! Quantities of Kubernetes objects.

/// Parses a Kubernetes quantity as a number: `250m`, `1Gi`, `1e3`. `None` if the text is not one, or negative.
#[must_use]
pub fn parse_kubernetes_quantity(text: &str) -> Option<f64> {
    const SUFFIXES: [(&str, f64); 16] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("Ei", 1_152_921_504_606_846_976.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
        ("", 1.0),
    ];
    let (digits, factor) =
        SUFFIXES.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, factor)))?;
    // `parse` also takes the names of numbers, such as `inf`.
    let amount = digits
        .parse::<f64>()
        .ok()
        .filter(|_| digits.starts_with(|c: char| c.is_ascii_digit() || c == '.'))?;
    Some(amount * factor).filter(|amount| amount.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_of_kubernetes_have_its_suffixes() {
        for (text, expected) in [
            ("100m", Some(0.1)),
            ("1.5", Some(1.5)),
            ("128Mi", Some(134_217_728.0)),
            ("2k", Some(2000.0)),
            ("1e3", Some(1000.0)),
            ("1E", Some(1e18)),
            ("-1", None),
            ("1e999", None),
            ("inf", None),
            ("banana", None),
            ("1 Gi", None),
            ("", None),
        ] {
            assert_eq!(parse_kubernetes_quantity(text), expected, "{text}");
        }
    }
}
