//! The distribution of full jitter: uniform between nothing and the doubled base or the cap.
//!
//! Seeds are fixed, so that a sound generator passes for good. Each test names its level alpha:
//! the chance with which a uniform sample fails it.

use proptest::prelude::*;

use super::*;
use crate::ports::Random as _;

/// Draws in one sample.
const DRAWS: u32 = 4_000;
/// Quantile of the Kolmogorov distribution for alpha = 0.001.
const KOLMOGOROV: f64 = 1.949;
/// Quantile of the normal distribution for alpha = 0.001, both sides.
const NORMAL: f64 = 3.291;
/// Quantile of chi-squared with 15 degrees of freedom for alpha = 0.001.
const CHI_SQUARED_15: f64 = 37.697;

/// The longest wait of an attempt, as the formula has it.
fn longest(attempt: u32, base: Duration, cap: Duration) -> Duration {
    let doubled = u128::from(2_u32).checked_pow(attempt).unwrap_or(u128::MAX);
    let nanos = base.as_nanos().saturating_mul(doubled).min(cap.as_nanos());
    Duration::from_nanos(u64::try_from(nanos).unwrap())
}

/// A sample as shares of the longest wait.
fn shares(seed: u64, attempt: u32, base: Duration, cap: Duration) -> Vec<f64> {
    let random = SeededRandom::new(seed);
    let longest = longest(attempt, base, cap).as_secs_f64();
    let draw = |_| full_jitter(attempt, base, cap, random.next_u64()).as_secs_f64() / longest;
    (0..DRAWS).map(draw).collect()
}

/// The largest distance between the sample's distribution and the uniform one.
fn distance(sample: &[f64]) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = f64::from(u32::try_from(sorted.len()).unwrap());
    let places = (0_u32..).map(f64::from).zip(&sorted);
    places.fold(0.0, |most, (place, share)| {
        f64::max(most, f64::max(share - place / count, (place + 1.0) / count - share))
    })
}

/// Attempts, bases and caps: before the cap, at it, and far beyond.
fn steps() -> impl Iterator<Item = (u32, Duration, Duration)> {
    let cases = [(SECOND, 30 * SECOND), (SECOND / 10, HOUR), (7 * SECOND, 5 * SECOND)];
    let attempts = [0, 1, 2, 3, 4, 5, 9, 31];
    cases.into_iter().flat_map(move |(base, cap)| attempts.map(|attempt| (attempt, base, cap)))
}

/// Kolmogorov-Smirnov against the uniform distribution, alpha = 0.001, for each step.
#[test]
fn waits_are_uniform() {
    let root = f64::from(DRAWS).sqrt();
    for (seed, (attempt, base, cap)) in (0..).zip(steps()) {
        let distance = distance(&shares(seed, attempt, base, cap));
        assert!(distance < KOLMOGOROV / root, "{attempt}, {base:?}, {cap:?}: {distance}");
    }
    // The test can fail: equal jitter, which waits half the time for sure, and no jitter.
    let sample = shares(1, 3, SECOND, 30 * SECOND);
    let equal: Vec<_> = sample.iter().map(|share| 0.5 + share / 2.0).collect();
    let slightly: Vec<_> = sample.iter().map(|share| 0.05 + share * 0.95).collect();
    for other in [equal, slightly, vec![1.0; 100]] {
        let count = f64::from(u32::try_from(other.len()).unwrap());
        assert!(distance(&other) > KOLMOGOROV / count.sqrt());
    }
}

/// The mean is half of the longest wait: within the error of the mean for alpha = 0.001.
#[test]
fn the_mean_is_half_of_the_longest_wait() {
    let error = NORMAL / (12.0 * f64::from(DRAWS)).sqrt();
    for (seed, (attempt, base, cap)) in (100..).zip(steps()) {
        let sample = shares(seed, attempt, base, cap);
        let mean = sample.iter().sum::<f64>() / f64::from(DRAWS);
        assert!((mean - 0.5).abs() < error, "{attempt}, {base:?}, {cap:?}: {mean}");
        assert!(sample.iter().all(|share| (0.0..=1.0).contains(share)));
    }
}

/// One wait says nothing of the next: no serial correlation, and pairs of neighbours fill a grid
/// of four by four evenly, both at alpha = 0.001.
#[test]
fn successive_waits_are_independent() {
    for seed in 0..8 {
        let sample = shares(seed, 4, SECOND, 30 * SECOND);
        let count = f64::from(DRAWS);
        let pairs = sample.windows(2).map(|pair| (pair[0] - 0.5) * (pair[1] - 0.5));
        let correlation = 12.0 * pairs.sum::<f64>() / (count - 1.0);
        assert!(correlation.abs() < NORMAL / count.sqrt(), "seed {seed}: {correlation}");
        let mut grid = [[0.0_f64; 4]; 4];
        let quarter = |share: f64| [0.25, 0.5, 0.75].iter().filter(|edge| share >= **edge).count();
        // Pairs that share no draw are independent of each other.
        for pair in sample.chunks_exact(2) {
            grid[quarter(pair[0])][quarter(pair[1])] += 1.0;
        }
        let expected = count / 2.0 / 16.0;
        let cells = grid.as_flattened().iter();
        let chi_squared: f64 = cells.map(|here| (here - expected).powi(2) / expected).sum();
        assert!(chi_squared < CHI_SQUARED_15, "seed {seed}: {chi_squared}");
    }
}

proptest! {
    /// Chance goes evenly from nothing to the longest wait: its ends are the wait's ends, and more
    /// of it is never less.
    #[test]
    fn chance_spans_the_whole_wait(
        attempt in 0_u32..80,
        base_ms in 1_u64..100_000,
        cap_ms in 1_u64..100_000_000,
        one: u64,
        other: u64,
    ) {
        let (base, cap) = (Duration::from_millis(base_ms), Duration::from_millis(cap_ms));
        let wait = |chance| full_jitter(attempt, base, cap, chance);
        let longest = longest(attempt, base, cap);
        prop_assert_eq!(wait(0), Duration::ZERO);
        prop_assert!(wait(u64::MAX) <= longest);
        prop_assert!(longest <= wait(u64::MAX) + Duration::from_nanos(1));
        prop_assert!(wait(one.min(other)) <= wait(one.max(other)));
        // The exponent saturates: no later attempt waits less at the same chance.
        prop_assert!(wait(one) <= full_jitter(attempt.saturating_add(1), base, cap, one));
        prop_assert_eq!(full_jitter(u32::MAX, base, cap, u64::MAX), wait_at_cap(base, cap));
    }
}

/// The longest wait that an attempt without bound can come to.
fn wait_at_cap(base: Duration, cap: Duration) -> Duration {
    full_jitter(79, base, cap, u64::MAX)
}
