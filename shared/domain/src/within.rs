//! A time limit for work that knows none.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::ports::Clock;

/// Runs `work` for at most `limit`; `None` when the time is up, and the work is dropped.
///
/// The work is polled first, so that of two things ready at once the result wins.
pub async fn within<T>(
    clock: &dyn Clock,
    limit: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    let mut alarm = clock.sleep(limit);
    poll_fn(|context| {
        if let Poll::Ready(value) = work.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        alarm.as_mut().poll(context).map(|()| None)
    })
    .await
}

#[cfg(test)]
mod tests;
