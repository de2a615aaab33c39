//! When a version became the current one, told by a label of its own.

use domain::time::Timestamp;

/// What such a label begins with.
const PREFIX: &str = "gleaner-current-since-";

/// The label that tells this instant, in whole seconds, such as
/// `gleaner-current-since-2026-11-30T12:00:00Z`.
pub(crate) fn since_label(at: Timestamp) -> String {
    let at = Timestamp::from_second(at.as_second()).unwrap_or(at);
    format!("{PREFIX}{at}")
}

/// The instant that a label of a version tells, at which a rotation made it the current one; none
/// for any other label.
pub fn instant_of(label: &str) -> Option<Timestamp> {
    label.strip_prefix(PREFIX)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_tells_its_instant() {
        let at: Timestamp = "2026-11-30T12:00:00.75Z".parse().unwrap();
        let label = since_label(at);
        assert_eq!(label, "gleaner-current-since-2026-11-30T12:00:00Z");
        assert_eq!(instant_of(&label), "2026-11-30T12:00:00Z".parse().ok());
        for other in ["AWSCURRENT", "gleaner-current-since-", "gleaner-current-since-noon", ""] {
            assert_eq!(instant_of(other), None, "{other}");
        }
    }
}
