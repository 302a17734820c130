//! Names of pods and containers.

/// Checks a name that becomes the name of a directory and of a thread.
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
    fn names_that_leave_their_directory_are_rejected() {
        for name in ["", "..", "a/b", "A", "-x", &"x".repeat(41)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name("client-proxy").is_ok());
    }
}
