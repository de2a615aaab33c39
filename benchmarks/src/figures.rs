//! Medians and percentiles.

/// The value below which this share (0 to 1) of the values lies: the nearest rank.
///
/// `None` without values. The order of the values does not matter.
pub(crate) fn percentile(values: &mut [f64], share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "far fewer values than 2^52, and a share between 0 and 1"
    )]
    let rank = (share.clamp(0.0, 1.0) * last as f64).round() as usize;
    values.get(rank).copied()
}

/// The middle value.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    percentile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rank_is_taken() {
        let mut values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(median(&mut values), Some(50.0));
        assert_eq!(percentile(&mut values, 0.99), Some(99.0));
        assert_eq!(percentile(&mut values, 1.0), Some(100.0));
        assert_eq!(percentile(&mut [], 0.5), None);
    }
}
