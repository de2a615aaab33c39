//! Several calls at once, a bounded number of them.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// One of several calls.
pub(crate) type Part<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Runs all parts at once and gives what they gave, in their order. The parts are polled in that
/// order, so that the same parts make the same calls in the same order.
pub(crate) async fn together<T>(parts: Vec<Part<'_, T>>) -> Vec<T> {
    let mut parts: Vec<(Part<'_, T>, Option<T>)> =
        parts.into_iter().map(|part| (part, None)).collect();
    poll_fn(|context| {
        let mut is_done = true;
        for (part, given) in parts.iter_mut().filter(|(_, given)| given.is_none()) {
            match part.as_mut().poll(context) {
                Poll::Ready(value) => *given = Some(value),
                Poll::Pending => is_done = false,
            }
        }
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    parts.into_iter().filter_map(|(_, given)| given).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ports::Clock as _;
    use crate::testing::EventClock;
    use crate::time::between;

    #[test]
    fn parts_run_at_once_and_give_in_their_order() {
        let clock = EventClock::default();
        let begun = clock.now();
        let naps = [3, 1, 2].map(|seconds| -> Part<'_, u64> {
            let clock = &clock;
            Box::pin(async move {
                clock.sleep(Duration::from_secs(seconds)).await;
                seconds
            })
        });
        let given = clock.run(together(naps.into())).unwrap();
        assert_eq!((given, between(begun, clock.now()).as_secs()), (vec![3, 1, 2], 3));
        assert_eq!(clock.run(together(Vec::<Part<'_, ()>>::new())).unwrap(), []);
    }
}
