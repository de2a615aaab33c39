//! What the description of a rotation's webhook says: which webhook it is to replace, in which
//! rotation, and since when.
//!
//! A webhook with a mark whose secret nobody knows is an orphan: the platform's answer, or we
//! ourselves, were lost before the secret was kept.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::ports::{VersionId, Webhook, WebhookId};
use crate::subscribe::without_token;
use crate::time::{Timestamp, between};

const OPEN: &str = "[rotation ";
const OF: &str = " of ";
const AT: &str = " at ";
/// Digits of a rotation's fingerprint: enough to tell an account's rotations apart.
const FINGERPRINT_DIGITS: usize = 16;

/// The mark of one webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Tells rotations apart.
    pub rotation: String,
    /// The webhook that is to be replaced.
    pub replaces: WebhookId,
    /// When it was registered, by our clock.
    pub at: Timestamp,
}

impl Mark {
    /// The mark of a webhook that this rotation registers now.
    pub fn new(version: &VersionId, replaces: &WebhookId, now: Timestamp) -> Self {
        let mut rotation = hex::encode(Sha256::digest(version.as_str()));
        rotation.truncate(FINGERPRINT_DIGITS);
        // Whole seconds, as they are read back.
        let at = Timestamp::from_second(now.as_second()).unwrap_or(now);
        Self { rotation, replaces: replaces.clone(), at }
    }

    /// Reads the last mark of a description; what is no mark is none.
    pub fn read(description: &str) -> Option<Self> {
        let (_, rest) = description.rsplit_once(OPEN)?;
        let (inside, _) = rest.split_once(']')?;
        let (rotation, rest) = inside.split_once(OF)?;
        let (replaces, at) = rest.split_once(AT)?;
        Some(Self {
            rotation: rotation.to_owned(),
            replaces: WebhookId::parse(replaces).ok()?,
            at: at.parse().ok()?,
        })
    }

    /// The mark of a webhook, if it has one.
    pub fn of(webhook: &Webhook) -> Option<Self> {
        Self::read(webhook.description.as_deref()?)
    }

    /// The old description, without what earlier registrations put at its end, and this mark.
    pub fn describe(&self, old: Option<&str>) -> String {
        let old = without_token(old.unwrap_or_default());
        let own = old.rsplit_once(OPEN).map_or(old, |(before, _)| before).trim();
        let gap = if own.is_empty() { "" } else { " " };
        let (rotation, replaces, at) = (&self.rotation, self.replaces.as_str(), self.at);
        format!("{own}{gap}{OPEN}{rotation}{OF}{replaces}{AT}{at}]")
    }

    /// How long a webhook with this mark is still left alone, should it be an orphan: whoever
    /// registered it may be about to keep its secret.
    pub fn protected_for(&self, patience: Duration, now: Timestamp) -> Duration {
        // A mark of the future is one of a clock that was wrong.
        patience.saturating_sub(between(self.at.min(now), now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark() -> Mark {
        let version = VersionId::parse(&"v".repeat(32)).unwrap();
        let replaced = WebhookId::parse("0B3E1F44-22F0-4a6b-9df3-8d4f6d2f7a11").unwrap();
        Mark::new(&version, &replaced, "2026-11-30T12:00:00.5Z".parse().unwrap())
    }

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let mark = mark();
        let text = mark.describe(Some("gleaner [prod] [abcdef012345]"));
        assert_eq!(
            text,
            format!(
                "gleaner [prod] [rotation {} of 0b3e1f44-22f0-4a6b-9df3-8d4f6d2f7a11 at \
                 2026-11-30T12:00:00Z]",
                mark.rotation
            )
        );
        assert_eq!(Mark::read(&text), Some(mark.clone()));
        assert_eq!(Mark::read(&format!("{text} [abcdef012345]")), Some(mark.clone()));
        // The next rotation's mark takes its place.
        assert_eq!(mark.describe(Some(&text)), text);
        assert_eq!(Mark::read(&mark.describe(None)), Some(mark));
    }

    #[test]
    fn what_is_no_mark_is_none() {
        for text in [
            "",
            "gleaner",
            "[rotation ",
            "[rotation a of b]",
            "[rotation a of b at c]",
            "[rotation a of / at 2026-11-30T12:00:00Z]",
            "[rotation a of b at 2026-11-30T12:00:00Z",
        ] {
            assert_eq!(Mark::read(text), None, "{text}");
        }
    }

    #[test]
    fn an_orphan_is_left_alone_for_a_while() {
        let (mark, patience) = (mark(), Duration::from_mins(15));
        let left = |text: &str| mark.protected_for(patience, text.parse().unwrap());
        assert_eq!(left("2026-11-30T12:00:00Z"), patience);
        assert_eq!(left("2026-11-30T12:10:00Z"), Duration::from_mins(5));
        assert_eq!(left("2026-11-30T12:15:00Z"), Duration::ZERO);
        assert_eq!(left("2026-11-30T11:00:00Z"), patience);
    }
}
