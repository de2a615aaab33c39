//! What an operator has to mend before deliveries are accepted: counted, and told at most once a
//! minute, since whoever reaches the receiver can send as much as they like.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::time::{Timestamp, between};

/// Shortest time between two lines about the same trouble.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// Why deliveries are not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    /// Well-formed signatures that match none of the secrets.
    Mismatch,
    /// Signatures that could not be read.
    Unreadable,
    /// There is no secret that can be used.
    NoSecret,
}

/// Deliveries that met the same trouble since the last line about it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Complaint {
    trouble: Trouble,
    count: u64,
    since: Timestamp,
    /// What is known of the last one.
    last: String,
}

#[derive(Debug, Default)]
struct Held {
    open: BTreeMap<Trouble, Complaint>,
    told_at: BTreeMap<Trouble, Timestamp>,
}

/// The complaints of one server.
#[derive(Debug, Default)]
pub struct Complaints {
    /// Where the signing secrets are, as a person reads it; `None` if nobody wants to know.
    place: Option<String>,
    held: Mutex<Held>,
}

impl Complaints {
    /// Complaints of a server whose signing secrets are in this place.
    pub fn about(place: String) -> Self {
        Self { place: Some(place), held: Mutex::default() }
    }

    /// Nothing is told: for deliveries that are forged on purpose.
    pub fn untold() -> Self {
        Self::default()
    }

    /// Counts one delivery, and tells what is due.
    pub(super) fn note(&self, trouble: Trouble, last: String, now: Timestamp) {
        if self.place.is_none() {
            return;
        }
        self.count(trouble, last, now);
        self.tell_due(now);
    }

    /// Tells what is due.
    pub(super) fn tell_due(&self, now: Timestamp) {
        self.tell(self.take(|told_at| is_due(told_at, now), now));
    }

    /// Tells what is left, at the end.
    pub(super) fn tell_rest(&self, now: Timestamp) {
        self.tell(self.take(|_| true, now));
    }

    fn count(&self, trouble: Trouble, last: String, now: Timestamp) {
        let mut held = self.held();
        let fresh = Complaint { trouble, count: 0, since: now, last: String::new() };
        let complaint = held.open.entry(trouble).or_insert(fresh);
        complaint.count = complaint.count.saturating_add(1);
        complaint.last = last;
    }

    /// Takes the complaints out that are to be told now.
    fn take(&self, is_due: impl Fn(Option<Timestamp>) -> bool, now: Timestamp) -> Vec<Complaint> {
        let mut held = self.held();
        let due: Vec<Trouble> = held
            .open
            .keys()
            .filter(|trouble| is_due(held.told_at.get(trouble).copied()))
            .copied()
            .collect();
        due.into_iter()
            .filter_map(|trouble| {
                held.told_at.insert(trouble, now);
                held.open.remove(&trouble)
            })
            .collect()
    }

    fn tell(&self, complaints: Vec<Complaint>) {
        let Some(place) = &self.place else { return };
        for complaint in complaints {
            tracing::warn!("{}", complaint.text(place));
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a minute has passed. A clock that was set back does not make it wait.
fn is_due(told_at: Option<Timestamp>, now: Timestamp) -> bool {
    told_at.is_none_or(|at| at > now || between(at, now) >= TOLD_EVERY)
}

impl Complaint {
    fn text(&self, place: &str) -> String {
        let deliveries = if self.count == 1 { "delivery" } else { "deliveries" };
        let many = format!("{} {deliveries}", self.count);
        let since = self.since.strftime("%FT%TZ");
        let last = &self.last;
        match self.trouble {
            Trouble::Mismatch => format!(
                "{many} rejected since {since}: the signature matches none of the secrets in \
                 {place}; unless somebody forges deliveries, put the right secret there, or make \
                 the webhooks anew with `gleaner webhooks delete` and `gleaner webhooks create`"
            ),
            Trouble::Unreadable => format!(
                "{many} rejected since {since}: no usable signature ({last}); if they are the \
                 platform's, check the settings `signing.*` and this machine's clock"
            ),
            Trouble::NoSecret => format!(
                "{many} answered with 503 since {since}: {last}; mend the secrets in {place}, or \
                 make webhooks with `gleaner webhooks create`"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::time::after;

    use super::*;

    fn at(secs: u64) -> Timestamp {
        after(Timestamp::UNIX_EPOCH, Duration::from_secs(secs))
    }

    fn due(complaints: &Complaints, secs: u64) -> Vec<Complaint> {
        complaints.take(|told_at| is_due(told_at, at(secs)), at(secs))
    }

    #[test]
    fn the_first_is_told_at_once_and_the_others_together() {
        let complaints = Complaints::about("s.json".to_owned());
        complaints.count(Trouble::Mismatch, String::new(), at(0));
        let first = due(&complaints, 0);
        assert_eq!((first.len(), first[0].count), (1, 1));
        for secs in 1..=17 {
            complaints.count(Trouble::Mismatch, String::new(), at(secs));
            assert!(due(&complaints, secs).is_empty());
        }
        // Another trouble is another line.
        complaints.count(Trouble::NoSecret, "no secret".to_owned(), at(20));
        assert_eq!(due(&complaints, 20)[0].trouble, Trouble::NoSecret);
        assert!(due(&complaints, 59).is_empty());
        let others = due(&complaints, 60);
        assert_eq!((others.len(), others[0].count, others[0].since), (1, 17, at(1)));
        let text = others[0].text("s.json");
        assert!(
            text.starts_with(
                "17 deliveries rejected since 1970-01-01T00:00:01Z: the signature matches none of \
                 the secrets in s.json; "
            ),
            "{text}"
        );
        assert!(due(&complaints, 120).is_empty(), "nothing is told twice");
    }

    #[test]
    fn a_clock_that_was_set_back_silences_nothing() {
        let complaints = Complaints::about("s.json".to_owned());
        complaints.count(Trouble::Unreadable, "signature_missing".to_owned(), at(100));
        assert_eq!(due(&complaints, 100).len(), 1);
        complaints.count(Trouble::Unreadable, "signature_missing".to_owned(), at(10));
        let again = due(&complaints, 10);
        assert!(again[0].text("s.json").contains("1 delivery rejected"), "{again:?}");
        assert!(again[0].text("s.json").contains("(signature_missing)"), "{again:?}");
    }

    #[test]
    fn what_nobody_wants_to_know_is_not_counted() {
        let complaints = Complaints::untold();
        complaints.note(Trouble::Mismatch, String::new(), at(0));
        assert!(due(&complaints, 0).is_empty());
    }
}
