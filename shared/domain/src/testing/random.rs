use std::sync::atomic::{AtomicU64, Ordering};

use crate::ports::Random;

/// Chance from a seed: the same seed gives the same numbers, everywhere (`SplitMix64`).
#[derive(Debug)]
pub struct SeededRandom {
    state: AtomicU64,
}

/// The odd step of `SplitMix64`: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl SeededRandom {
    /// The sequence of this seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: AtomicU64::new(seed) }
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        let mut mixed = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference implementation's first numbers for seed 1234567.
    #[test]
    fn the_sequence_is_that_of_splitmix64() {
        let random = SeededRandom::new(1_234_567);
        let numbers: Vec<_> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
        assert_eq!(random.token().len(), 32);
        assert_ne!(random.token(), random.token());
    }
}
