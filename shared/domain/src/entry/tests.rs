use std::time::Duration;

use super::*;
use crate::job::Kind;
use crate::limits::{HISTORY_MAX, Limits, REOPENS_MAX};
use crate::time::after;

fn now() -> Timestamp {
    "2026-11-30T00:00:00Z".parse().unwrap()
}

fn later(seconds: u64) -> Timestamp {
    after(now(), Duration::from_secs(seconds))
}

fn key() -> JobKey {
    JobKey::new(Kind::Extract, JobId::parse("j1").unwrap())
}

fn word(token: &str) -> Announcement {
    Announcement { cause: Cause::Delivery, delivery_id: Some("d1".into()), token: token.into() }
}

fn announce(existing: Option<&Entry>, token: &str, at: Timestamp) -> Announced {
    Entry::announce(existing, &key(), &word(token), at, &Limits::default())
}

fn written(announced: Announced) -> Entry {
    match announced {
        Announced::Write(entry) => *entry,
        other => panic!("expected a write, got {other:?}"),
    }
}

fn dead(reason: DeadReason) -> Entry {
    written(announce(None, "t0", now())).settled(
        State::Dead { reason, error: None, result: None },
        Cause::Work,
        now(),
        &Limits::default(),
    )
}

#[test]
fn a_first_announcement_writes_a_received_row_that_the_sweep_watches() {
    let entry = written(announce(None, "t1", now()));
    assert_eq!(entry.state, State::Received);
    assert_eq!((entry.version, entry.generation), (1, 0));
    assert_eq!(entry.not_before, Some(now()));
    assert_eq!(entry.enqueued_at, Some(now()));
    assert_eq!(entry.due_at, Some(later(60)));
    assert_eq!(entry.expires_at, None);
    assert_eq!(entry.history.len(), 1);
    assert_eq!(entry.history[0].delivery_id.as_deref(), Some("d1"));
}

/// DQ-01: a row whose task was never sent gets one with the next announcement.
#[test]
fn a_row_without_a_sent_task_is_announced_again() {
    let entry = written(announce(None, "t1", now())).unsent();
    let again = written(announce(Some(&entry), "t2", later(1)));
    assert_eq!(again.enqueued_at, Some(later(1)));
    assert_eq!(announce(Some(&again), "t3", later(2)), Announced::Known);
}

#[test]
fn a_stale_task_is_sent_again_after_the_grace() {
    let entry = written(announce(None, "t1", now()));
    assert_eq!(announce(Some(&entry), "t2", later(59)), Announced::Known);
    assert!(matches!(announce(Some(&entry), "t2", later(60)), Announced::Write(_)));
}

#[test]
fn the_call_that_wrote_the_row_sends_its_task() {
    let entry = written(announce(None, "t1", now()));
    assert_eq!(announce(Some(&entry), "t1", later(1)), Announced::SendAgain);
}

#[test]
fn an_announcement_pulls_a_row_that_was_put_off_to_now() {
    let entry = written(announce(None, "t1", now()));
    let waiting = entry.put_off(later(900), entry.counters.clone(), &Limits::default());
    let pulled = written(announce(Some(&waiting), "t2", later(10)));
    assert_eq!(pulled.not_before, Some(later(10)));
}

/// DQ-03: a delivery that read its clock before the winner's write does not send again.
#[test]
fn an_announcement_with_an_older_clock_finds_the_task_sent() {
    let entry = written(announce(None, "t1", later(1)));
    assert_eq!(announce(Some(&entry), "t2", now()), Announced::Known);
}

/// DQ-05: a row that expired but still lies there counts as absent; the expiry is in seconds.
#[test]
fn an_expired_row_is_replaced_whole() {
    let entry = dead(DeadReason::Failed);
    let ninety_days = 90 * 24 * 3_600;
    assert_eq!(entry.expires_at, Some(later(ninety_days).as_second()));
    assert_eq!(announce(Some(&entry), "t2", later(ninety_days - 1)), Announced::Known);
    let fresh = written(announce(Some(&entry), "t2", later(ninety_days)));
    assert_eq!((fresh.version, fresh.history.len()), (1, 1));
    assert_eq!(fresh.first_seen, later(ninety_days));
}

/// WK-09: a terminal state never changes, whatever is announced.
#[test]
fn terminal_rows_do_not_change() {
    for reason in DeadReason::ALL {
        let entry = dead(reason);
        let announced = announce(Some(&entry), "t2", later(10));
        match reason {
            DeadReason::Gone | DeadReason::NeverSettled => {
                let open = written(announced);
                assert_eq!((open.generation, &open.state), (1, &State::Received));
                assert_eq!((open.expires_at, open.counters.reopens), (None, 1));
            }
            _ => assert_eq!(announced, Announced::Known, "{reason}"),
        }
    }
}

#[test]
fn a_dead_row_is_reopened_a_few_times_only() {
    let mut entry = dead(DeadReason::Gone);
    for reopens in 1..=REOPENS_MAX {
        let open = written(announce(Some(&entry), &format!("t{reopens}"), later(10)));
        assert_eq!(open.counters.reopens, reopens);
        let again = State::Dead { reason: DeadReason::Gone, error: None, result: None };
        entry = open.settled(again, Cause::Work, later(20), &Limits::default());
    }
    assert_eq!(announce(Some(&entry), "last", later(30)), Announced::Known);
}

/// DQ-10: an operator opens a dead entry with a fresh budget.
#[test]
fn a_redrive_starts_a_new_generation() {
    let entry = dead(DeadReason::ResubmitsExhausted);
    let link = Link {
        submission: "s".into(),
        lineage: JobId::parse("j0").unwrap(),
        attempt: 3,
        base: 0,
        request: None,
        reference: None,
    };
    let open = entry.linked(&link).unwrap().redriven(None, later(5), &Limits::default()).unwrap();
    assert_eq!(open.link.as_ref().unwrap().base, 3);
    assert_eq!((open.generation, open.expires_at), (1, None));
    assert!(open.due_at.is_some());
    assert_eq!(open.redriven(None, later(6), &Limits::default()), None);
}

#[test]
fn a_link_is_set_once_and_in_any_state() {
    let link = |submission: &str| Link {
        submission: submission.into(),
        lineage: JobId::parse("j1").unwrap(),
        attempt: 0,
        base: 0,
        request: None,
        reference: None,
    };
    let entry = dead(DeadReason::Failed);
    let linked = entry.linked(&link("a")).unwrap();
    assert_eq!(linked.state, entry.state);
    assert_eq!(linked.linked(&link("b")), None);
}

/// Every row that is open has a time at which somebody looks, and no expiry; a terminal row has
/// an expiry and no such time.
#[test]
fn open_rows_are_watched_and_terminal_rows_expire() {
    let limits = Limits::default();
    let received = written(announce(None, "t1", now()));
    let post = Post::first("p".into(), now(), &limits);
    let open =
        [
            Entry::expected(key(), None, Cause::Submit, now(), &limits),
            received.clone(),
            received.unsent(),
            received.put_off(later(5), Counters::default(), &limits),
            received.swept(later(5), &limits),
            received.resubmitting(post.clone(), post.recover_from(&limits), now()),
            received
                .resubmitting(post.clone(), post.recover_from(&limits), now())
                .back_to_received(later(9), now(), &limits),
        ];
    for entry in open {
        assert!(entry.due_at.is_some() && entry.expires_at.is_none(), "{entry:?}");
        let gone = State::Dead { reason: DeadReason::Gone, error: None, result: None };
        let settled = entry.settled(gone, Cause::Work, now(), &limits);
        assert!(settled.due_at.is_none() && settled.expires_at.is_some());
        assert_eq!(settled.version, entry.version + 1);
    }
}

#[test]
fn sweeps_are_spaced_out() {
    let limits = Limits::default();
    let mut entry = written(announce(None, "t1", now()));
    let mut minutes = Vec::new();
    for _ in 0..8 {
        entry = entry.swept(now(), &limits);
        minutes.push((entry.due_at.unwrap().as_second() - now().as_second()) / 60);
    }
    assert_eq!(minutes, [5, 10, 20, 40, 80, 120, 120, 120]);
}

#[test]
fn the_history_keeps_the_last_transitions() {
    let limits = Limits::default();
    let mut entry = written(announce(None, "t1", now()));
    for round in 0..40_u64 {
        let gone = State::Dead { reason: DeadReason::Failed, error: None, result: None };
        entry = entry.settled(gone, Cause::Work, later(round), &limits);
        entry = entry.redriven(None, later(round), &limits).unwrap();
    }
    assert_eq!(entry.history.len(), HISTORY_MAX);
    assert_eq!(entry.history.last().unwrap().at, later(39));
}

/// The row's JSON is a stored format: a change shows here.
#[test]
fn the_stored_form_is_stable() {
    let entry = dead(DeadReason::Failed);
    let json = serde_json::to_string_pretty(&entry).unwrap();
    insta::assert_snapshot!(json);
    assert_eq!(serde_json::from_str::<Entry>(&json).unwrap(), entry);
}
