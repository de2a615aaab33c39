//! Every port call of a delivery failed before its effect, failed after it, and hung.

use std::time::Duration;

use super::bench::{Bench, Fault, V1, extract};
use crate::entry::{Announced, Announcement, Cause, Counters, DeadReason, Entry, State, StateName};
use crate::ports::ErrorKind;
use crate::time::{after, before};

const SECOND: Duration = Duration::from_secs(1);

/// The row that a delivery meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Absent,
    Expected,
    Fresh,
    Stale,
    PutOff,
    Gone,
    Expired,
}

pub(super) const START: [Start; 7] = [
    Start::Absent,
    Start::Expected,
    Start::Fresh,
    Start::Stale,
    Start::PutOff,
    Start::Gone,
    Start::Expired,
];

impl Start {
    pub(super) fn lay(self, bench: &Bench) {
        if let Some(row) = self.row(bench) {
            bench.ledger.place(&row);
        }
    }

    /// The version of the row that is laid.
    pub(super) fn version(self) -> u64 {
        self.row(&Bench::new()).map_or(0, |row| row.version)
    }

    fn row(self, bench: &Bench) -> Option<Entry> {
        let (now, limits) = (bench.now(), &bench.limits);
        let expected = Entry::expected(extract("j1"), None, Cause::Submit, now, limits);
        let received_at = |at| {
            let token = "an-earlier-call".to_owned();
            let word = Announcement { cause: Cause::Delivery, delivery_id: None, token };
            match Entry::announce(None, &extract("j1"), &word, at, limits) {
                Announced::Write(row) => *row,
                other => panic!("no row: {other:?}"),
            }
        };
        let dead = |reason| State::Dead { reason, error: None, result: None };
        match self {
            Self::Absent => None,
            Self::Expected => Some(expected),
            Self::Fresh => Some(received_at(before(now, SECOND))),
            Self::Stale => Some(received_at(before(now, limits.enqueue_grace))),
            Self::PutOff => {
                let later = after(now, Duration::from_mins(15));
                Some(received_at(now).put_off(later, Counters::default(), limits))
            }
            Self::Gone => Some(expected.settled(dead(DeadReason::Gone), Cause::Work, now, limits)),
            Self::Expired => {
                let long_ago = before(now, limits.retention * 2);
                let failed = dead(DeadReason::Failed);
                Some(expected.settled(failed, Cause::Work, long_ago, limits))
            }
        }
    }
}

/// What of a row must be the same whatever went wrong on the way: all but times, tokens and the
/// count of writes.
type Outcome = (StateName, u32, u32, Vec<(Option<StateName>, StateName)>, bool, bool);

fn outcome(row: &Entry) -> Outcome {
    let history = row.history.iter().map(|line| (line.from, line.to)).collect();
    let (state, reopens) = (row.state.name(), row.counters.reopens);
    (state, row.generation, reopens, history, row.due_at.is_some(), row.expires_at.is_some())
}

fn healthy(start: Start) -> (Vec<&'static str>, Outcome) {
    let bench = Bench::new();
    start.lay(&bench);
    assert_eq!(bench.status(V1), 202);
    let calls = bench.gate.take_calls();
    (calls, outcome(&bench.row(&extract("j1")).unwrap()))
}

#[test]
fn a_delivery_makes_three_port_calls_or_one_where_a_task_is_under_way() {
    for start in START {
        let expected: &[&str] =
            if start == Start::Fresh { &["load"] } else { &["load", "write", "send"] };
        assert_eq!(healthy(start).0, expected, "{start:?}");
    }
}

fn spoilings() -> Vec<Fault> {
    let kinds = [ErrorKind::Throttled, ErrorKind::Unavailable, ErrorKind::Denied];
    let mut faults = vec![Fault::HangBefore, Fault::HangAfter];
    faults.extend(kinds.map(Fault::Before));
    faults.extend(kinds.map(Fault::After));
    faults
}

/// DQ-01, DQ-02, DQ-04, S01, S02: whatever call of a delivery fails, loses its answer or hangs,
/// from whatever row: 503 in time, never 2xx, never 4xx; the repetition ends as if nothing had
/// happened; and after the grace there is a task, from the repetition or from the sweep.
#[test]
fn after_every_fault_the_repetition_and_the_sweep_make_it_good() {
    for start in START {
        let (calls, wanted) = healthy(start);
        for (at, call) in calls.iter().enumerate() {
            for fault in spoilings() {
                let name = format!("{start:?}, {call}, {fault:?}");
                let bench = Bench::new();
                start.lay(&bench);
                bench.gate.spoil(at + 1, fault);
                let (reception, took) = bench.timed(|| bench.deliver(V1));
                assert_eq!(reception.status(), 503, "{name}");
                assert!(took < 3 * SECOND, "{name}: {took:?}");

                bench.clock.advance(SECOND);
                assert_eq!(bench.status(V1), 202, "{name}");
                let row = bench.row(&extract("j1")).unwrap();
                assert_eq!(outcome(&row), wanted, "{name}");

                let is_hung = matches!(fault, Fault::HangBefore | Fault::HangAfter);
                let has_effect = matches!(fault, Fault::After(_) | Fault::HangAfter);
                let sent = match *call {
                    // A fresh row has its task from an earlier delivery.
                    "load" => u64::from(start != Start::Fresh),
                    // The row is durable and looks sent: the sweep sends its task.
                    "write" => u64::from(!has_effect),
                    // A row whose send failed says so; one whose send hung does not.
                    "send" => u64::from(has_effect) + u64::from(!is_hung),
                    other => panic!("an unknown call: {other}"),
                };
                assert_eq!(bench.queue.sent(), sent, "{name}");

                bench.clock.advance(bench.limits.enqueue_grace);
                let swept = bench.sweep(10).unwrap();
                assert_eq!((swept.sent, swept.dead, swept.partial), (1, 0, false), "{name}");
                assert_eq!(bench.queue.sent(), sent + 1, "{name}");
                assert_eq!(outcome(&bench.row(&extract("j1")).unwrap()), wanted, "{name}");
            }
        }
    }
}

/// DQ-01: the process is killed at any call, and no delivery ever comes again: what was written
/// is sent by the sweep; where nothing was written, nothing was acknowledged.
#[test]
fn a_receiver_killed_at_any_call_leaves_what_the_sweep_needs() {
    for start in [Start::Absent, Start::Expected, Start::Stale, Start::PutOff, Start::Gone] {
        for call in 1..=3 {
            for fault in [Fault::HangBefore, Fault::HangAfter] {
                let name = format!("{start:?}, call {call}, {fault:?}");
                let bench = Bench::new();
                start.lay(&bench);
                bench.gate.spoil(call, fault);
                let headers = bench.signed(super::bench::SECRET, V1);
                let mut delivery = Box::pin(bench.receive(&headers, V1));
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                assert!(delivery.as_mut().poll(&mut context).is_pending(), "{name}");
                drop(delivery);

                bench.clock.advance(Duration::from_mins(20));
                let swept = bench.sweep(10).unwrap();
                let is_written = call == 3 || (call == 2 && fault == Fault::HangAfter);
                let was_open = !matches!(start, Start::Absent | Start::Gone);
                assert_eq!(swept.sent, u32::from(is_written || was_open), "{name}");
            }
        }
    }
}

/// DQ-01: the send fails once: the first delivery is refused for now, the second sends, the
/// third is a repetition; one message in all.
#[test]
fn a_failed_send_is_made_good_by_the_next_delivery() {
    let bench = Bench::new();
    bench.gate.spoil(3, Fault::Before(ErrorKind::Unavailable));
    let codes: Vec<_> = (0..3).map(|_| bench.deliver(V1).code()).collect();
    assert_eq!(codes, ["unavailable", "accepted_sent", "accepted_known"]);
    assert_eq!(bench.queue.sent(), 1);
}

/// DQ-01: the send fails, and so does the note that it failed: the sweep sends.
#[test]
fn a_failed_send_that_could_not_be_noted_is_made_good_by_the_sweep() {
    for fault in spoilings() {
        let bench = Bench::new();
        bench.gate.spoil(3, Fault::Before(ErrorKind::Unavailable));
        bench.gate.spoil(4, fault);
        assert_eq!(bench.status(V1), 503, "{fault:?}");
        let has_effect = matches!(fault, Fault::After(_) | Fault::HangAfter);
        assert_eq!(bench.status(V1), 202, "{fault:?}");
        assert_eq!(bench.queue.sent(), u64::from(has_effect), "{fault:?}");
        bench.clock.advance(bench.limits.enqueue_grace);
        assert_eq!(bench.sweep(10).unwrap().sent, 1, "{fault:?}");
    }
}

/// DQ-02: the message was accepted and the answer lost: the repetition sends a second one, and
/// there is one row for both.
#[test]
fn a_lost_answer_makes_two_messages_for_one_row() {
    let bench = Bench::new();
    bench.gate.spoil(3, Fault::After(ErrorKind::Unavailable));
    assert_eq!(bench.status(V1), 503);
    assert_eq!(bench.status(V1), 202);
    let tasks = bench.queue.tasks();
    assert_eq!((tasks.len(), &tasks[0]), (2, &tasks[1]));
    assert_eq!(bench.ledger.entries().len(), 1);
}

/// DQ-04: storage and queue refuse or hang at every call: 503 before any gateway gives up, and
/// the reason is told.
#[test]
fn lasting_trouble_is_503_in_time() {
    for operation in ["load", "write", "send"] {
        for fault in spoilings() {
            let bench = Bench::new();
            bench.gate.spoil_all(operation, fault);
            let is_hung = matches!(fault, Fault::HangBefore | Fault::HangAfter);
            let has_effect = matches!(fault, Fault::After(_) | Fault::HangAfter);
            // Then the row is durable, and the sweep sends what nobody sent.
            let is_owed = (operation == "write" && has_effect) || (operation == "send" && is_hung);
            for delivery in 1..=3 {
                let name = format!("{operation}, {fault:?}, delivery {delivery}");
                let (reception, took) = bench.timed(|| bench.deliver(V1));
                assert!(took < 3 * SECOND, "{name}");
                let code = match fault {
                    _ if is_owed && delivery > 1 => "accepted_known",
                    Fault::Before(kind) | Fault::After(kind) => kind.as_str(),
                    Fault::HangBefore | Fault::HangAfter => "deadline",
                };
                assert_eq!(reception.code(), code, "{name}");
                let status = if is_owed && delivery > 1 { 202 } else { 503 };
                assert_eq!(reception.status(), status, "{name}");
            }
            bench.gate.heal();
            bench.clock.advance(bench.limits.enqueue_grace);
            assert_eq!(bench.sweep(10).unwrap().sent == 1, bench.ledger.writes() > 0);
        }
    }
}

/// DQ-04: a row that does not decode is nobody's fault outside: 503, never 2xx.
#[test]
fn a_corrupt_row_is_503() {
    let bench = Bench::new();
    assert_eq!(bench.status(V1), 202);
    assert!(bench.ledger.corrupt(&extract("j1")));
    let reception = bench.deliver(V1);
    assert_eq!((reception.status(), reception.code()), (503, "corrupt"));
}
