//! Names of pods and containers.

/// Names become directory and thread names.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (1..=40).contains(&name.len()) && name.bytes().all(allowed) && !name.starts_with('-') {
        return Ok(());
    }
    Err(format!("`{name}` is not a name: one has 1 to 40 lower-case letters, digits and dashes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_of_their_folder_are_refused() {
        for name in ["", "..", "a/b", "A", "-x", &"x".repeat(41)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name("client-proxy").is_ok());
    }
}
