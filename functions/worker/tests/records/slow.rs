//! A platform that takes its time.

use std::sync::Arc;
use std::time::Duration;

use domain::entry::StateName;
use domain::ports::{Clock as _, TaskSource as _};
use domain::testing::EventClock;
use domain::time::{after, between};

use super::rig::{Pace, Rig, key, rig_by};

const SECOND: Duration = Duration::from_secs(1);
const JOBS: [&str; 10] = ["j0", "j1", "j2", "j3", "j4", "j5", "j6", "j7", "j8", "j9"];

/// Works ten finished jobs with twelve seconds left; the messages that are named, and how long it
/// took.
fn ten_in_twelve_seconds(rig: &Rig<EventClock>) -> (Vec<String>, Duration) {
    let working = async {
        let mut tasks = Vec::new();
        for id in JOBS {
            tasks.push(rig.finished(id).await);
        }
        let tasks: Vec<_> = tasks.iter().map(String::as_str).collect();
        let began = rig.clock.now();
        let named = rig.work_until(&tasks, after(began, 12 * SECOND)).await;
        (named, between(began, rig.clock.now()))
    };
    rig.clock.run(working).unwrap()
}

fn stored(rig: &Rig<EventClock>) -> Vec<&'static str> {
    let is_stored =
        |id: &&str| rig.ledger.entry(&key(id)).unwrap().state.name() == StateName::Stored;
    JOBS.into_iter().filter(is_stored).collect()
}

/// WK-04: ten records, five seconds for each answer, twelve seconds left: they are asked for side by
/// side, and all is done after five.
#[test]
fn ten_slow_answers_fit_side_by_side() {
    let rig = rig_by(Arc::new(EventClock::default()), Pace::SideBySide(5 * SECOND));
    assert_eq!(ten_in_twelve_seconds(&rig), (Vec::new(), 5 * SECOND));
    assert_eq!(stored(&rig), JOBS);
}

/// WK-04: where the platform answers one after the other, the worker stops while there is time to
/// write: what is done is done and not asked for again, what is not is put off, with a task of its
/// own, and no message is named.
#[test]
fn what_does_not_fit_is_put_off_before_the_time_is_up() {
    let rig = rig_by(Arc::new(EventClock::default()), Pace::InTurn(5 * SECOND));
    let (named, took) = ten_in_twelve_seconds(&rig);
    assert_eq!(named, Vec::<String>::new());
    // No call outlasts four fifths of the time.
    assert!(took < 10 * SECOND, "{took:?}");
    assert_eq!(stored(&rig), ["j0"]);
    assert_eq!(rig.queue.tasks().len(), 9);
    let again = async || {
        rig.clock.sleep(Duration::from_mins(5)).await;
        let waiting = rig.queue.receive(10, Duration::from_mins(10)).await.unwrap();
        let tasks: Vec<_> = waiting.iter().map(|held| held.task.encode()).collect();
        let tasks: Vec<_> = tasks.iter().map(String::as_str).collect();
        rig.work_until(&tasks, after(rig.clock.now(), Duration::from_mins(2))).await
    };
    // Six answers fit into the longest time of a call, then the other three.
    assert_eq!(rig.clock.run(again()), Some(Vec::new()));
    assert_eq!(rig.clock.run(again()), Some(Vec::new()));
    assert_eq!((stored(&rig).len(), rig.looks()), (10, 10 + 9 + 3));
}
