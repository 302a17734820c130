//! Names of runs.

use crate::failure::Failure;

/// Random identifier of six letters and digits.
pub(super) fn random_id() -> Result<String, Failure> {
    const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut random = [0_u8; 6];
    rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Failure::environment(&error).about("make up the run's name"))?;
    Ok(random.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect())
}
