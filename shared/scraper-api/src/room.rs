//! Room for large answers: however many calls are under way, their bodies together are bounded.
//!
//! An answer needs no room up to [`FREE_BYTES`], then a share of [`SHARED_BYTES`], and beyond
//! [`SHARE_BYTES`] the one lane for very large ones. Nobody who has a lane or a share waits for
//! another share, so all get on.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of a body that need no room: as many as a usual extract job has, and more.
const FREE_BYTES: usize = 256 * 1_024; // 256 KiB
/// Bytes of one share: a usual page of 50 items fits.
const SHARE_BYTES: usize = 4 * 1_024 * 1_024; // 4 MiB
/// Bytes of all shares: three at once, more where they are not used up.
const SHARED_BYTES: usize = 3 * SHARE_BYTES;
/// Bytes per permit.
const UNIT: usize = 1_024;

tokio::task_local! {
    /// What the answer that a task works at takes up.
    static TAKEN: Mutex<Option<Taken>>;
}

/// Works with one answer at a time: the room that one takes up is free for others when the next
/// one is asked for, or at the end. Without it, an answer takes up room while it is read.
pub async fn one_answer_at_a_time<F: Future>(work: F) -> F::Output {
    TAKEN.scope(Mutex::default(), work).await
}

/// The room of one client.
#[derive(Debug)]
pub(crate) struct Room {
    shares: Arc<Semaphore>,
    lane: Arc<Semaphore>,
}

/// What one answer takes up.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    share: Option<OwnedSemaphorePermit>,
    lane: Option<OwnedSemaphorePermit>,
}

impl Default for Room {
    fn default() -> Self {
        let shares = Arc::new(Semaphore::new(SHARED_BYTES / UNIT));
        Self { shares, lane: Arc::new(Semaphore::new(1)) }
    }
}

impl Room {
    /// Waits until there is room for a body of this many bytes.
    pub(crate) async fn make(&self, taken: &mut Taken, bytes: usize) {
        if bytes > FREE_BYTES && taken.share.is_none() {
            let permits = u32::try_from(SHARE_BYTES / UNIT).unwrap_or(u32::MAX);
            // An error would mean that the semaphore is closed, which nobody does.
            taken.share = Arc::clone(&self.shares).acquire_many_owned(permits).await.ok();
        }
        if bytes > SHARE_BYTES && taken.lane.is_none() {
            taken.lane = Arc::clone(&self.lane).acquire_owned().await.ok();
        }
    }
}

impl Taken {
    /// Keeps what a body of this many bytes takes up for as long as its task works with it.
    pub(crate) fn keep(mut self, bytes: usize) {
        if let Some(share) = &mut self.share {
            let unused = SHARE_BYTES.saturating_sub(bytes) / UNIT;
            drop(share.split(unused));
        }
        hold(Some(self));
    }
}

/// Gives back what the task's last answer took up.
pub(crate) fn give_back() {
    hold(None);
}

fn hold(taken: Option<Taken>) {
    // Outside of a task that works so, nothing is held beyond the call.
    let _ = TAKEN.try_with(|held| {
        *held.lock().unwrap_or_else(PoisonError::into_inner) = taken;
    });
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    async fn take(room: &Room, bytes: usize) -> Taken {
        let mut taken = Taken::default();
        room.make(&mut taken, bytes).await;
        taken
    }

    fn free(room: &Room) -> (usize, usize) {
        (room.shares.available_permits() * UNIT, room.lane.available_permits())
    }

    #[tokio::test]
    async fn small_answers_need_no_room_and_large_ones_wait() {
        let room = Room::default();
        drop(take(&room, FREE_BYTES).await);
        let shares = [take(&room, SHARE_BYTES).await, take(&room, FREE_BYTES + 1).await];
        let lane = take(&room, SHARE_BYTES + 1).await;
        assert_eq!(free(&room), (0, 0));
        assert!(take(&room, FREE_BYTES + 1).now_or_never().is_none());
        drop(shares);
        assert!(take(&room, SHARE_BYTES + 1).now_or_never().is_none(), "one at a time");
        drop(lane);
        assert!(take(&room, SHARE_BYTES + 1).now_or_never().is_some());
        assert_eq!(free(&room), (SHARED_BYTES, 1));
    }

    /// What was reserved and not needed is free at once, the rest with the next answer.
    #[tokio::test]
    async fn a_task_holds_the_room_of_one_answer() {
        let room = Room::default();
        one_answer_at_a_time(async {
            take(&room, FREE_BYTES + 1).await.keep(UNIT * 300);
            assert_eq!(free(&room).0, SHARED_BYTES - UNIT * 300);
            take(&room, SHARE_BYTES + 1).await.keep(SHARE_BYTES + 1);
            assert_eq!(free(&room), (SHARED_BYTES - SHARE_BYTES, 0));
            give_back();
            assert_eq!(free(&room), (SHARED_BYTES, 1));
            take(&room, SHARE_BYTES + 1).await.keep(SHARE_BYTES + 1);
        })
        .await;
        assert_eq!(free(&room), (SHARED_BYTES, 1), "and none at its end");
        take(&room, SHARE_BYTES).await.keep(SHARE_BYTES);
        assert_eq!(free(&room), (SHARED_BYTES, 1), "nor outside of such a task");
    }
}
