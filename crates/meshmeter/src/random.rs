//! Secrets from the kernel's randomness.

use crate::failure::Failure;
use rustix::rand::{GetRandomFlags, getrandom};

const SECRET_BYTES: usize = 32;

/// A secret that nobody can guess, in hexadecimal digits.
pub fn secret() -> Result<String, Failure> {
    let mut bytes = [0; SECRET_BYTES];
    // So few bytes come all at once.
    getrandom(&mut bytes, GetRandomFlags::empty()).map_err(|error| Failure::environment(&error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
