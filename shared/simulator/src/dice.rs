//! Randomness as a pure function: the seed, what is asked, and for which thing.
//!
//! No draw depends on an earlier one, so the fate of a job is the same whatever happens around it.

use std::time::Duration;

/// FNV-1a, 64 bit: offset basis and prime (Fowler, Noll, Vo).
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Identifies a thing that draws: a job, a child, a delivery, a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u64);

impl Key {
    /// Hashes bytes to a key.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(mix(fnv(FNV_BASIS, bytes)))
    }

    /// Derives the key of the `index`-th thing of this one.
    pub(crate) fn child(self, index: u64) -> Self {
        Self(mix(self.0.wrapping_mul(FNV_PRIME) ^ mix(index.wrapping_add(1))))
    }

    /// Combines two keys.
    pub(crate) fn with(self, other: Self) -> Self {
        self.child(other.0)
    }
}

/// Draws numbers from the seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice {
    seed: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed: mix(seed) }
    }

    /// Draws 64 bits for one question about one thing.
    pub(crate) fn bits(self, what: &str, key: Key) -> u64 {
        mix(fnv(FNV_BASIS ^ self.seed, what.as_bytes()) ^ mix(key.0))
    }

    /// Draws from 0 (inclusive) to 1 (exclusive).
    pub(crate) fn unit(self, what: &str, key: Key) -> f64 {
        unit_of(self.bits(what, key))
    }

    /// Says whether an event of the given rate happens.
    pub(crate) fn happens(self, what: &str, key: Key, rate: f64) -> bool {
        rate > 0.0 && self.unit(what, key) < rate
    }

    /// Draws an index below `len`; zero when `len` is zero.
    pub(crate) fn index(self, what: &str, key: Key, len: usize) -> usize {
        let len = u64::try_from(len).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.bits(what, key) % len).unwrap_or(0)
    }

    /// Draws a log-normal duration (Box and Muller), cut at 20 times the median.
    pub(crate) fn log_normal(self, what: &str, key: Key, median: Duration, sigma: f64) -> Duration {
        let first = (1.0 - unit_of(self.bits(what, key.child(1)))).max(f64::MIN_POSITIVE);
        let second = unit_of(self.bits(what, key.child(2)));
        let normal = (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * second).cos();
        median.mul_f64((sigma * normal).exp().clamp(0.0, LOG_NORMAL_CUT))
    }

    /// Draws sixteen bytes in the layout of a version 4 UUID, as lower-case text.
    pub(crate) fn uuid(self, what: &str, key: Key) -> String {
        let high = self.bits(what, key.child(1));
        let low = self.bits(what, key.child(2));
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0x0fff,
            ((low >> 48) & 0x3fff) | 0x8000,
            low & 0xffff_ffff_ffff
        )
    }
}

/// Longest job, in medians: a bound so that tests and demos end.
const LOG_NORMAL_CUT: f64 = 20.0;

fn fnv(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}

/// The finaliser of `SplitMix64` (Steele, Lea, Flood 2014).
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn unit_of(bits: u64) -> f64 {
    let top = u32::try_from(bits >> 32).unwrap_or(0);
    f64::from(top) / 4_294_967_296.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_spread_and_repeatable() {
        let dice = Dice::new(7);
        let hits = (0..10_000).filter(|i| dice.happens("x", Key::of(b"j").child(*i), 0.1)).count();
        assert!((850..1150).contains(&hits), "{hits}");
        assert_eq!(dice.bits("x", Key::of(b"a")), Dice::new(7).bits("x", Key::of(b"a")));
        assert_ne!(dice.bits("x", Key::of(b"a")), dice.bits("y", Key::of(b"a")));
        assert_ne!(dice.bits("x", Key::of(b"a")), Dice::new(8).bits("x", Key::of(b"a")));
    }

    #[test]
    fn the_median_of_durations_is_the_configured_one() {
        let dice = Dice::new(1);
        let median = Duration::from_secs(20);
        let below = (0..2_000)
            .filter(|i| dice.log_normal("d", Key::of(b"d").child(*i), median, 0.8) < median)
            .count();
        assert!((900..1100).contains(&below), "{below}");
    }

    #[test]
    fn ids_are_version_4_uuids() {
        let id = Dice::new(3).uuid("job", Key::of(b"u"));
        assert_eq!(id.len(), 36);
        assert_eq!(id.as_bytes()[14], b'4');
        assert!(matches!(id.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
    }
}
