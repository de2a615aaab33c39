use std::collections::BTreeSet;

use super::*;
use crate::entry::{Counters, StateName, StoredObject};
use crate::intent::{IntentState, Submission};
use crate::job::JobStatus;
use crate::ports::{ApiError, ApiErrorKind};
use crate::post::Post;
use crate::receive::tests::bench::{Bench, Fault, SECRET, V1, drive, extract};
use crate::request::{FetchOptions, JobRequest};
use crate::testing::extract_answer;
use crate::time::between;
use crate::work::work;

const MINUTE: Duration = Duration::from_mins(1);
/// Calls of a run before it lists rows: the pause is read, and intents listed.
const FIRST: usize = 2;

/// A row that became due a moment ago.
fn due(bench: &Bench, id: &str) -> JobKey {
    let row = Entry::expected(extract(id), None, Cause::Submit, bench.now(), &bench.limits);
    bench.ledger.place(&Entry { due_at: Some(bench.now()), ..row });
    extract(id)
}

fn change_row(bench: &Bench, key: &JobKey, act: impl FnOnce(&mut Entry)) {
    let mut row = bench.row(key).unwrap();
    act(&mut row);
    bench.ledger.place(&row);
}

fn stored() -> State {
    let result = StoredObject {
        key: "k".to_owned(),
        bytes: 1,
        sha256: "00".to_owned(),
        empty: false,
        unsettled: false,
    };
    State::Stored { result }
}

fn swept(sent: u32) -> Swept {
    Swept { sent, ..Swept::default() }
}

fn intent(bench: &Bench, position: u64) -> Intent {
    let request = JobRequest::Extract {
        url: format!("https://example.com/{position}"),
        options: FetchOptions::default(),
    };
    let submission = Submission { run: "r".to_owned(), position, request, reference: None };
    Intent::open(&submission, "t".to_owned(), bench.now(), &bench.limits)
}

/// SC-01, S02: a row that was received and never finished is sent again, once per spacing.
#[test]
fn rows_that_exist_and_never_finished_are_sent_again_once() {
    let bench = Bench::new();
    assert_eq!(bench.status(V1), 202);
    bench.queue.lose_all();
    bench.clock.advance(bench.limits.enqueue_grace);
    assert_eq!(bench.sweep(10).unwrap(), swept(1));
    assert_eq!(bench.queue.tasks()[0].key, extract("j1"));
    assert_eq!(bench.sweep(10).unwrap(), swept(0));
    bench.clock.advance(5 * MINUTE);
    assert_eq!(bench.sweep(10).unwrap(), swept(1));
}

/// SC-01: what a worker put off, or is under way in time, is left alone.
#[test]
fn rows_that_are_not_due_are_left_alone() {
    let bench = Bench::new();
    assert_eq!(bench.status(V1), 202);
    bench.clock.advance(Duration::from_secs(59));
    assert_eq!(bench.sweep(10).unwrap(), swept(0));
    let until = after(bench.now(), 10 * MINUTE);
    change_row(&bench, &extract("j1"), |row| {
        *row = row.put_off(until, Counters::default(), &bench.limits);
    });
    bench.clock.advance(10 * MINUTE);
    assert_eq!(bench.sweep(10).unwrap(), swept(0));
    bench.clock.advance(bench.limits.enqueue_grace);
    assert_eq!(bench.sweep(10).unwrap(), swept(1));
}

/// The sweep spaces its repeats: 5 minutes, doubling to 2 hours; then the row is poison.
#[test]
fn repeats_are_spaced_out_and_end_as_poison() {
    let bench = Bench::new();
    let key = due(&bench, "j1");
    let spacings: Vec<u64> = (0..12)
        .map(|_| {
            assert_eq!(bench.sweep(10).unwrap(), swept(1));
            let due_at = bench.row(&key).unwrap().due_at.unwrap();
            let wait = between(bench.now(), due_at);
            bench.clock.advance(wait.checked_sub(Duration::from_millis(1)).unwrap());
            assert_eq!(bench.sweep(10).unwrap(), swept(0));
            bench.clock.advance(Duration::from_millis(1));
            wait.as_secs() / 60
        })
        .collect();
    assert_eq!(spacings, [5, 10, 20, 40, 80, 120, 120, 120, 120, 120, 120, 120]);
    assert_eq!(bench.sweep(10).unwrap(), Swept { dead: 1, ..Swept::default() });
    let row = bench.row(&key).unwrap();
    assert!(matches!(row.state, State::Dead { reason: DeadReason::Poison, .. }));
    assert_eq!((row.due_at, row.history.last().unwrap().cause), (None, Cause::Sweep));
    assert_eq!(bench.queue.sent(), 12);
    assert_eq!(bench.sweep(10).unwrap(), swept(0));
}

/// A row that was about to be paid for is never given up as poison: whether it was paid is open.
#[test]
fn a_resubmission_that_nobody_finishes_ends_as_ambiguous() {
    let bench = Bench::new();
    let key = due(&bench, "j1");
    change_row(&bench, &key, |row| {
        let post = Post::first("t".to_owned(), bench.now(), &bench.limits);
        *row = row.resubmitting(post, bench.now(), bench.now());
        row.counters.sweeps = bench.limits.sweeps_max;
    });
    assert_eq!(bench.sweep(10).unwrap().dead, 1);
    let row = bench.row(&key).unwrap();
    assert!(matches!(row.state, State::Dead { reason: DeadReason::Ambiguous, .. }));
}

/// SC-13: the job finishes between scan and write: the row stays as its worker left it, whether
/// the sweep was about to send it or to give it up.
#[test]
fn work_that_finishes_between_scan_and_write_stays_finished() {
    for sweeps in [0, 12] {
        for operation in ["load", "write"] {
            let bench = Bench::new();
            let key = due(&bench, "j1");
            change_row(&bench, &key, |row| row.counters.sweeps = sweeps);
            let done =
                bench.row(&key).unwrap().settled(stored(), Cause::Work, bench.now(), &bench.limits);
            let (ledger, finished) = (bench.ledger.clone(), done.clone());
            bench.gate.meanwhile(operation, move || ledger.place(&finished));
            assert_eq!(bench.sweep(10).unwrap(), swept(0), "{operation}");
            assert_eq!(bench.row(&key), Some(done), "{operation}");
            assert_eq!(bench.queue.sent(), 0, "{operation}");
        }
    }
}

/// SC-13: a row that a worker put off between scan and write is not pulled forward.
#[test]
fn a_row_that_moves_between_scan_and_write_is_left_to_its_mover() {
    let bench = Bench::new();
    let key = due(&bench, "j1");
    let later = after(bench.now(), MINUTE);
    let moved = bench.row(&key).unwrap().put_off(later, Counters::default(), &bench.limits);
    let (ledger, put_off) = (bench.ledger.clone(), moved.clone());
    bench.gate.meanwhile("write", move || ledger.place(&put_off));
    assert_eq!(bench.sweep(10).unwrap(), swept(0));
    assert_eq!(bench.row(&key), Some(moved));
}

/// SC-14: the list still shows rows that moved on: each is read again before anything is done.
#[test]
fn a_list_that_lags_behind_its_rows_does_no_harm() {
    let bench = Bench::new();
    let keys: Vec<_> = (0..3).map(|n| due(&bench, &format!("j{n}"))).collect();
    let later = after(bench.now(), MINUTE);
    let settled =
        bench.row(&keys[0]).unwrap().settled(stored(), Cause::Work, bench.now(), &bench.limits);
    let put_off = bench.row(&keys[1]).unwrap().put_off(later, Counters::default(), &bench.limits);
    let (ledger, rows) = (bench.ledger.clone(), [settled.clone(), put_off.clone()]);
    // The list is read; then the rows move; only then the first of them is loaded.
    bench.gate.meanwhile("load", move || rows.iter().for_each(|row| ledger.place(row)));
    assert_eq!(bench.sweep(10).unwrap(), swept(1));
    assert_eq!(bench.queue.tasks()[0].key, keys[2]);
    assert_eq!(bench.row(&keys[0]), Some(settled));
    assert_eq!(bench.row(&keys[1]), Some(put_off));
}

/// SC-14: an intent that the list still shows as open, and that was closed since, is not looked
/// for.
#[test]
fn an_intent_that_was_closed_since_it_was_listed_is_left_alone() {
    let bench = Bench::new();
    let open = intent(&bench, 0);
    bench.ledger.place_intent(&open);
    bench.clock.advance(Duration::from_hours(1));
    let accepted = IntentState::Accepted { job_id: extract("j1").job_id };
    let closed = open.moved(accepted, bench.now(), &bench.limits);
    let (ledger, row) = (bench.ledger.clone(), closed.clone());
    bench.gate.meanwhile("load_intent", move || ledger.place_intent(&row));
    assert_eq!(bench.sweep(10).unwrap(), swept(0));
    assert_eq!(bench.ledger.intents(), [closed]);
    assert!(bench.jobs.calls().is_empty());
}

/// SC-03: rows that do not decode are counted, and the good ones behind them are handled.
#[test]
fn one_bad_row_does_not_stop_the_run() {
    let bench = Bench::new();
    for n in 0..4 {
        let key = due(&bench, &format!("j{n}"));
        assert!(n == 3 || bench.ledger.corrupt(&key));
    }
    let bad = intent(&bench, 0);
    bench.ledger.place_intent(&bad);
    assert!(bench.ledger.corrupt_intent(&bad.id));
    bench.ledger.place_intent(&intent(&bench, 1));
    bench.clock.advance(Duration::from_hours(1));
    let mut report = bench.sweep(10).unwrap();
    assert!(report.first_unreadable.take().unwrap().contains(&bad.id));
    assert_eq!(report, Swept { sent: 1, not_accepted: 1, unreadable: 4, ..Swept::default() });
    assert_eq!(bench.queue.tasks()[0].key, extract("j3"));
}

/// SC-03: so are rows that decode in the list and not when they are read again, and rows that the
/// ledger refuses to write.
#[test]
fn a_row_that_cannot_be_read_or_written_does_not_stop_the_run() {
    for (operation, kind) in
        [("load", ErrorKind::Corrupt), ("write", ErrorKind::Invalid), ("write", ErrorKind::Corrupt)]
    {
        let bench = Bench::new();
        for n in 0..3 {
            due(&bench, &format!("j{n}"));
        }
        // The rows are listed, the first is loaded, and written.
        let call = if operation == "load" { FIRST + 2 } else { FIRST + 3 };
        bench.gate.spoil(call, Fault::Before(kind));
        let mut report = bench.sweep(10).unwrap();
        assert!(report.first_unreadable.take().unwrap().contains("j0: "));
        assert_eq!(report, Swept { sent: 2, unreadable: 1, ..Swept::default() }, "{operation}");
    }
    let bench = Bench::new();
    for position in 0..2 {
        bench.ledger.place_intent(&intent(&bench, position));
    }
    bench.clock.advance(Duration::from_hours(1));
    // Beside its neighbour it is found all the same, since that reads it once more.
    bench.gate.spoil(FIRST + 1, Fault::Before(ErrorKind::Corrupt));
    let mut report = bench.sweep(10).unwrap();
    assert!(report.first_unreadable.take().unwrap().contains("corrupt"));
    assert_eq!(report, Swept { not_accepted: 2, unreadable: 1, ..Swept::default() });
}

/// SC-04: 60 hopeless rows first, a budget of 50, a good one behind them: it is reached, in the
/// first run where they cannot be read, in the second where they are swept.
#[test]
fn a_hopeless_prefix_does_not_hide_what_lies_behind_it() {
    let hopeless: Vec<String> = (0..60).map(|n| format!("a{n:02}")).collect();
    for readable in [false, true] {
        let bench = Bench::new();
        for id in &hopeless {
            let key = due(&bench, id);
            assert!(readable || bench.ledger.corrupt(&key));
        }
        let good = due(&bench, "z");
        let was_sent = || bench.queue.tasks().iter().any(|task| task.key == good);
        let first = bench.sweep(50).unwrap();
        assert_eq!((first.sent, first.partial), if readable { (50, true) } else { (1, false) });
        assert_eq!(was_sent(), !readable);
        let second = bench.sweep(50).unwrap();
        assert_eq!((second.sent, second.partial), if readable { (11, false) } else { (0, false) });
        assert!(was_sent());
    }
}

/// SC-15: a run stops at its budget, says so, and the next one goes on.
#[test]
fn the_budget_bounds_a_run_and_the_next_one_goes_on() {
    let bench = Bench::new();
    for n in 0..450 {
        due(&bench, &format!("j{n:03}"));
    }
    for (budget, sent, partial) in [(0, 0, true), (1, 1, true), (449, 449, false), (10, 0, false)] {
        let report = bench.sweep(budget).unwrap();
        assert_eq!((report.sent, report.partial), (sent, partial), "budget {budget}");
    }
    let tasks: BTreeSet<_> = bench.queue.tasks().into_iter().collect();
    assert_eq!((tasks.len(), bench.queue.sent()), (450, 450));
}

#[test]
fn a_budget_that_the_list_just_fills_is_not_partial() {
    let bench = Bench::new();
    for n in 0..200 {
        due(&bench, &format!("j{n:03}"));
    }
    assert_eq!(bench.sweep(200).unwrap(), swept(200));
}

/// The queue fails in the middle: what was sent is sent, the row whose task failed says that
/// none was sent, and nothing is lost.
#[test]
fn a_queue_that_fails_in_the_middle_loses_nothing() {
    for fault in [
        Fault::Before(ErrorKind::Unavailable),
        Fault::Before(ErrorKind::Throttled),
        Fault::After(ErrorKind::Unavailable),
        // An adapter's bug in sending is not the row's fault.
        Fault::Before(ErrorKind::Invalid),
    ] {
        let bench = Bench::new();
        for n in 0..4 {
            due(&bench, &format!("j{n}"));
        }
        // One list; then load, write and send for each row: the second send is the seventh of them.
        bench.gate.spoil(FIRST + 7, fault);
        assert!(bench.sweep(10).is_err(), "{fault:?}");
        let failed = bench.row(&extract("j1")).unwrap();
        assert_eq!((failed.enqueued_at, failed.counters.sweeps), (None, 0), "{fault:?}");

        assert_eq!(bench.sweep(10).unwrap(), swept(2), "{fault:?}");
        bench.clock.advance(bench.limits.enqueue_grace);
        assert_eq!(bench.sweep(10).unwrap(), swept(1), "{fault:?}");
        let tasks: BTreeSet<_> = bench.queue.tasks().into_iter().collect();
        assert_eq!(tasks.len(), 4, "{fault:?}");
    }
}

/// A queue that is down for two days makes no row poison: no worker ever saw it.
#[test]
fn a_queue_that_is_down_for_long_poisons_nothing() {
    let bench = Bench::new();
    let key = due(&bench, "j1");
    bench.gate.spoil_all("send", Fault::Before(ErrorKind::Unavailable));
    for _ in 0..(48 * 12) {
        assert!(bench.sweep(10).is_err());
        bench.clock.advance(5 * MINUTE);
    }
    bench.gate.heal();
    assert_eq!(bench.sweep(10).unwrap(), swept(1));
    let row = bench.row(&key).unwrap();
    assert_eq!((row.state, row.counters.sweeps), (State::Expected, 1));
}

/// A send that failed, and whose taking back failed too, leaves the row due at its next sweep.
#[test]
fn a_failed_send_that_could_not_be_taken_back_is_due_later() {
    let bench = Bench::new();
    let key = due(&bench, "j1");
    bench.gate.spoil(FIRST + 4, Fault::Before(ErrorKind::Unavailable));
    bench.gate.spoil(FIRST + 5, Fault::Before(ErrorKind::Unavailable));
    assert!(bench.sweep(10).is_err());
    assert_eq!(bench.row(&key).unwrap().counters.sweeps, 1);
    bench.clock.advance(5 * MINUTE);
    assert_eq!(bench.sweep(10).unwrap(), swept(1));
}

/// A task that a worker finished although its answer was lost is not undone.
#[test]
fn taking_a_sweep_back_touches_no_row_that_moved_on() {
    let bench = Bench::new();
    let key = due(&bench, "j1");
    bench.gate.spoil(FIRST + 4, Fault::After(ErrorKind::Unavailable));
    let (ledger, now, limits) = (bench.ledger.clone(), bench.now(), bench.limits.clone());
    bench.gate.meanwhile("send", move || {
        let row = ledger.entry(&extract("j1")).unwrap();
        ledger.place(&row.settled(stored(), Cause::Work, now, &limits));
    });
    assert!(bench.sweep(10).is_err());
    assert_eq!(bench.row(&key).unwrap().state.name(), StateName::Stored);
}

/// The next announcement need not wait for a row whose swept task was never sent.
#[test]
fn a_delivery_sends_what_the_sweep_could_not() {
    let bench = Bench::new();
    assert_eq!(bench.status(V1), 202);
    bench.clock.advance(bench.limits.enqueue_grace);
    bench.gate.take_calls();
    bench.gate.spoil(FIRST + 4, Fault::Before(ErrorKind::Unavailable));
    assert!(bench.sweep(10).is_err());
    let reception = bench.send(&bench.signed(SECRET, V1), V1);
    assert_eq!(reception.code(), "accepted_sent");
}

/// Every call of a run failed before its effect, or its answer lost: what the next runs do ends
/// in one task or more for every row, and every row stays open and due.
#[test]
fn after_every_fault_the_next_runs_make_it_good() {
    let calls = {
        let bench = Bench::new();
        (0..3).for_each(|n| drop(due(&bench, &format!("j{n}"))));
        bench.sweep(10).unwrap();
        bench.gate.take_calls().len()
    };
    assert_eq!(calls, FIRST + 1 + 3 * 3);
    for call in 1..=calls {
        for kind in [ErrorKind::Throttled, ErrorKind::Unavailable, ErrorKind::Denied] {
            for fault in [Fault::Before(kind), Fault::After(kind)] {
                let bench = Bench::new();
                (0..3).for_each(|n| drop(due(&bench, &format!("j{n}"))));
                bench.gate.spoil(call, fault);
                assert!(bench.sweep(10).is_err(), "call {call}, {fault:?}");
                bench.sweep(10).unwrap();
                bench.clock.advance(5 * MINUTE);
                bench.sweep(10).unwrap();
                let tasks: BTreeSet<_> = bench.queue.tasks().into_iter().collect();
                assert_eq!(tasks.len(), 3, "call {call}, {fault:?}");
                for row in bench.ledger.entries() {
                    assert_eq!(row.state, State::Expected);
                    assert!(row.due_at.unwrap() > bench.now() && row.counters.sweeps <= 2);
                }
            }
        }
    }
}

/// Intents are recovered although the queue is down.
#[test]
fn a_queue_in_trouble_does_not_keep_intents_waiting() {
    let bench = Bench::new();
    due(&bench, "j1");
    bench.ledger.place_intent(&intent(&bench, 0));
    bench.clock.advance(Duration::from_hours(1));
    bench.gate.spoil_all("send", Fault::Before(ErrorKind::Unavailable));
    assert_eq!(bench.sweep(10).unwrap_err().port, "queue");
    assert_eq!(bench.ledger.intents()[0].state.name(), "deferred");
}

/// Intents: bounded by the budget, in order of their age, and none paid for.
#[test]
fn intents_are_recovered_within_the_budget_and_never_paid_for() {
    let bench = Bench::new();
    for position in 0..3 {
        bench.ledger.place_intent(&intent(&bench, position));
    }
    bench.clock.advance(Duration::from_hours(1));
    let report = bench.sweep(2).unwrap();
    assert_eq!(report, Swept { not_accepted: 2, partial: true, ..Swept::default() });
    let report = bench.sweep(2).unwrap();
    assert_eq!(report, Swept { not_accepted: 1, ..Swept::default() });
    assert!(bench.jobs.submits().is_empty());
    assert_eq!(bench.sweep(2).unwrap(), swept(0));
}

/// An intent whose job list cannot be read is looked at again later, and at last is ambiguous.
#[test]
fn an_intent_that_cannot_be_decided_is_put_off_and_ends_as_ambiguous() {
    let bench = Bench::new();
    bench.ledger.place_intent(&intent(&bench, 0));
    for hours in 1..=12 {
        bench.clock.advance(Duration::from_hours(1));
        let unread = ApiError::new(ApiErrorKind::Unavailable, "down");
        bench.jobs.fail_list(unread);
        let report = bench.sweep(10).unwrap();
        assert_eq!(report.ambiguous, u32::from(hours == 12), "{hours} hours");
        assert_eq!(bench.sweep(10).unwrap(), swept(0), "{hours} hours");
    }
    assert!(bench.jobs.submits().is_empty());
}

/// The worker's look starts the count of sweeps anew.
#[test]
fn a_look_that_puts_a_row_off_clears_its_sweeps() {
    let bench = Bench::new();
    let key = due(&bench, "j1");
    change_row(&bench, &key, |row| row.counters.sweeps = bench.limits.sweeps_max - 1);
    assert_eq!(bench.sweep(10).unwrap(), swept(1));
    bench.jobs.answer_extract(&key.job_id, Ok(extract_answer(&key.job_id, JobStatus::Processing)));
    let task = Task { key: key.clone() };
    drive(&bench.clock, work(bench.ports(), &task)).unwrap();
    assert_eq!(bench.row(&key).unwrap().counters.sweeps, 0);
}

/// While the account is paused no row's job can be asked for: no task is sent, no sweep counted,
/// and the rows are due at the pause's end.
#[test]
fn nothing_is_swept_while_the_account_is_paused() {
    let bench = Bench::new();
    let key = due(&bench, "j1");
    let until = after(bench.now(), 48 * 60 * MINUTE);
    let pauses = crate::pause::Pauses::default();
    let pause = pauses.extend(&*bench.ledger, Scope::All, until, "throttled");
    drive(&bench.clock, pause).unwrap();
    while bench.now() < until {
        assert_eq!(bench.sweep(10).unwrap(), swept(0));
        bench.clock.advance(30 * MINUTE);
    }
    assert_eq!(bench.row(&key).unwrap().counters.sweeps, 0);
    assert_eq!(bench.sweep(10).unwrap(), swept(1));
}

/// The plan of a sweep is what it then does; nothing changes by making it.
#[test]
fn the_plan_of_a_sweep_is_what_it_then_does() {
    let bench = Bench::new();
    for n in 0..250 {
        due(&bench, &format!("j{n:03}"));
    }
    change_row(&bench, &extract("j007"), |row| row.counters.sweeps = bench.limits.sweeps_max);
    assert!(bench.ledger.corrupt(&extract("j249")));
    bench.ledger.place_intent(&intent(&bench, 0));
    let later = after(bench.now(), MINUTE);
    change_row(&bench, &extract("j000"), |row| row.due_at = Some(later));
    bench.clock.advance(Duration::from_secs(30));
    let writes = bench.ledger.writes();
    let (mut send, mut give_up) = (0, Vec::new());
    let mut hear = |overdue| match overdue {
        Overdue::Send(_) => send += 1,
        Overdue::GiveUp(entry) => give_up.push(entry.key.clone()),
        Overdue::Recover(intent) => panic!("{intent:?} is not due"),
    };
    let unreadable = drive(&bench.clock, plan(bench.ports(), 1_000, &mut hear)).unwrap();
    assert_eq!((send, unreadable.len(), bench.ledger.writes()), (247, 1, writes));
    assert_eq!(give_up, [extract("j007")]);
    let report = bench.sweep(1_000).unwrap();
    assert_eq!((report.sent, report.dead, report.unreadable), (247, 1, 1));
    bench.clock.advance(Duration::from_hours(1));
    let mut intents = 0;
    let mut hear = |overdue| intents += u32::from(matches!(overdue, Overdue::Recover(_)));
    drive(&bench.clock, plan(bench.ports(), 1, &mut hear)).unwrap();
    assert_eq!(intents, 1);
}
