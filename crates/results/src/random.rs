//! Random numbers by SplitMix64, and a Fisher-Yates shuffle. Both are implemented here, so that a seed always gives the
//! same order of trials and the same graph, independent of random number libraries.

/// Distance of two states.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Fisher-Yates shuffle: every order is equally likely.
pub fn shuffle<T>(items: &mut [T], random: &mut SplitMix64) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last as u64 + 1) as usize);
    }
}

/// SplitMix64, from Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014);
/// constants as in the reference code of Vigna (<https://prng.di.unimi.it/splitmix64.c>).
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

/// Finalizer of [`SplitMix64`], applied to the state after this one: well-mixed bits of a number.
#[must_use]
pub fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(INCREMENT);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl SplitMix64 {
    /// A generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let mixed = mixed(self.state);
        self.state = self.state.wrapping_add(INCREMENT);
        mixed
    }

    /// Uniform random number below the bound. The bias of the multiplication method is under 2⁻⁵⁰ for any
    /// number of cells.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_match_reference_code() {
        let mut random = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}
