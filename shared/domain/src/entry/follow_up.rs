//! The row of a follow-up.

use super::{Cause, Entry, Link, State};
use crate::job::JobKey;
use crate::limits::Limits;
use crate::time::Timestamp;

impl Entry {
    /// A new row that asks for failed items of `parent` once more, and whose task is sent now. The
    /// link is the parent's, with the request for those items.
    pub fn follow_up(
        key: JobKey,
        parent: JobKey,
        link: Link,
        now: Timestamp,
        limits: &Limits,
    ) -> Self {
        let mut entry = Self::blank(key, State::Received, now);
        entry.follow_up = Some(parent);
        entry.link = Some(link);
        entry.mark_enqueued(None, now, limits);
        entry.record(None, Cause::Work, None, now);
        entry
    }
}
