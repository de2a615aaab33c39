use proptest::prelude::*;

use super::*;
use crate::time::after;

const SECOND: Duration = Duration::from_secs(1);
const BOUNDS: Bounds = Bounds { min: SECOND, max: Duration::from_mins(5) };
/// Chance that moves no pause.
const MIDDLE: u64 = u64::MAX / 2;

fn noon() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

/// Looks at 100 jobs of one page that were made at once and finish every so often; gives the
/// pauses, and how many jobs each look found.
fn steady(every: Duration) -> Vec<(Duration, usize)> {
    let mut pace = Pace::default();
    let (mut elapsed, mut open) = (Duration::ZERO, 100_usize);
    let mut looks = Vec::new();
    while open > 10 {
        let ended = usize::try_from(elapsed.as_nanos() / every.as_nanos()).unwrap();
        let left = 100_usize.saturating_sub(ended);
        let found = open - left.min(open);
        open -= found;
        let shown = Shown { finished: vec![noon(); found], open: vec![noon(); open], pages: 1 };
        let pause = pace.pause(&shown, after(noon(), elapsed), BOUNDS, MIDDLE);
        looks.push((pause, found));
        elapsed += pause;
    }
    looks
}

/// A page that is asked for shows a few finished jobs, whatever the scale of their durations.
#[test]
fn a_page_is_asked_for_when_it_pays() {
    for every in [2 * SECOND, 5 * SECOND, 20 * SECOND, 100 * SECOND] {
        let looks = steady(every);
        let late = &looks[looks.len() / 2..];
        let found: usize = late.iter().map(|(_, found)| found).sum();
        let per_look = count(found) / count(late.len());
        assert!((1.0..=4.0).contains(&per_look), "{every:?}: {per_look}");
    }
}

/// Jobs that do not finish are asked for ever less often: a job that takes a thousand times longer
/// costs thirty looks more.
#[test]
fn slow_jobs_cost_little() {
    let looks_until = |end: Duration| {
        let bounds = Bounds { max: Duration::MAX, ..BOUNDS };
        let mut pace = Pace::default();
        let (mut elapsed, mut looks) = (Duration::ZERO, 0);
        while elapsed < end {
            let shown = Shown { open: vec![noon(); 3], pages: 1, ..Shown::default() };
            let pause = pace.pause(&shown, after(noon(), elapsed), bounds, MIDDLE);
            assert!(pause <= (elapsed / 4).max(SECOND) + Duration::from_millis(1));
            elapsed += pause;
            looks += 1;
        }
        looks
    };
    let (minute, long) = (looks_until(60 * SECOND), looks_until(60_000 * SECOND));
    assert!((28..=33).contains(&(long - minute)), "{minute}, {long}");
}

/// Old jobs that hang do not slow the looks at new ones, nor do new ones hasten them for ever.
#[test]
fn old_jobs_do_not_hide_new_ones() {
    let now = noon();
    let old = crate::time::before(now, Duration::from_hours(2));
    let mut pace = Pace::default();
    let mut open = vec![old; 20];
    let slow = pace.pause(
        &Shown { open: open.clone(), pages: 1, ..Shown::default() },
        now,
        BOUNDS,
        MIDDLE,
    );
    assert_eq!(slow, BOUNDS.max);
    assert!(pace.is_news(after(now, SECOND)) && !pace.is_news(old));
    let new = after(now, SECOND);
    open.extend([new; 20]);
    let shown = Shown { open, pages: 1, ..Shown::default() };
    let quick = pace.pause(&shown, after(new, SECOND), BOUNDS, MIDDLE);
    assert!(quick < 10 * SECOND, "{quick:?}");
}

proptest! {
    /// CL-05: whatever was seen, no pause leaves its bounds, and nothing panics.
    #[test]
    fn no_pause_leaves_its_bounds(
        looks in prop::collection::vec(
            (prop::collection::vec(-1_000_000_i64..1_000_000, 0..5), 0_usize..4, 0_u32..5, 0_u64..100_000),
            1..20,
        ),
        min in 0_u64..10_000,
        max in prop_oneof![0_u64..10_000, Just(u64::MAX)],
        chance: u64,
    ) {
        let bounds = Bounds { min: Duration::from_millis(min), max: Duration::from_millis(max) };
        let mut pace = Pace::default();
        let mut now = noon();
        for (open, finished, pages, step) in looks {
            let open: Vec<_> = open
                .into_iter()
                .map(|at| now.saturating_add(jiff::SignedDuration::from_millis(at)).unwrap())
                .collect();
            let shown = Shown { finished: vec![now; finished], open, pages };
            let pause = pace.pause(&shown, now, bounds, chance);
            prop_assert!(pause >= bounds.min && pause <= bounds.max.max(bounds.min));
            now = after(now, Duration::from_millis(step));
        }
    }
}
