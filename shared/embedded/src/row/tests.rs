use domain::entry::{Cause, Counters, DeadReason, Link, StoredObject, Transition};
use domain::job::{JobError, JobId};
use domain::post::Post;
use domain::time::after;
use proptest::prelude::*;
use std::time::Duration;

use super::*;
use crate::testing::{extract, intent, start};

fn instant() -> impl Strategy<Value = Timestamp> {
    // Nanoseconds too: the JSON keeps them, the columns do not.
    (0_i64..4_000_000_000, 0_i32..1_000_000_000)
        .prop_map(|(second, nanosecond)| Timestamp::new(second, nanosecond).unwrap())
}

fn object() -> impl Strategy<Value = StoredObject> {
    (".{0,20}", any::<u64>(), "[0-9a-f]{64}", any::<bool>()).prop_map(
        |(key, bytes, sha256, flag)| StoredObject {
            key,
            bytes,
            sha256,
            empty: flag,
            unsettled: !flag,
        },
    )
}

fn state() -> impl Strategy<Value = State> {
    let post = (".{0,9}", 1_u32..9, instant()).prop_map(|(token, number, at)| Post {
        token,
        number,
        intended_at: at,
        since: at,
        begin_before: after(at, Duration::from_mins(1)),
        searches: number % 3,
    });
    let error = (".{0,9}", ".{0,40}", any::<bool>())
        .prop_map(|(code, message, retryable)| JobError::new(&code, &message, retryable));
    prop_oneof![
        Just(State::Expected),
        Just(State::Received),
        post.prop_map(|post| State::Resubmitting { post }),
        object().prop_map(|result| State::Stored { result }),
        job_id().prop_map(|by| State::Superseded { by }),
        (0..DeadReason::ALL.len(), proptest::option::of(error), proptest::option::of(object()))
            .prop_map(|(reason, error, result)| {
                State::Dead { reason: DeadReason::ALL[reason], error, result }
            }),
    ]
}

fn job_id() -> impl Strategy<Value = JobId> {
    "[!-.0-~]{1,128}".prop_filter_map("no id", |text| JobId::parse(&text).ok())
}

fn entry() -> impl Strategy<Value = Entry> {
    let history = (instant(), proptest::option::of(".{0,20}")).prop_map(|(at, delivery_id)| {
        let (from, cause) = (Some(StateName::Expected), Cause::Delivery);
        Transition { at, from, to: StateName::Received, cause, delivery_id, note: None }
    });
    let link = (".{0,9}", job_id(), any::<u32>()).prop_map(|(submission, lineage, attempt)| Link {
        submission,
        lineage,
        attempt,
        base: attempt / 2,
        request: Some(extract("https://example.com/")),
        reference: None,
    });
    (
        (0..Kind::ALL.len(), job_id(), state(), any::<u32>(), 1..=u64::try_from(i64::MAX).unwrap()),
        (instant(), proptest::option::of(instant()), proptest::option::of(any::<i64>())),
        (proptest::option::of(link), proptest::option::of(".{0,40}")),
        proptest::collection::vec(history, 0..4),
    )
        .prop_map(|(main, (first_seen, due_at, expires_at), (link, token), history)| {
            let (kind, job_id, state, generation, version) = main;
            Entry {
                key: JobKey::new(Kind::ALL[kind], job_id),
                state,
                generation,
                version,
                first_seen,
                job_created_at: due_at,
                dt: due_at.map(domain::time::utc_date),
                not_before: None,
                due_at,
                enqueued_at: due_at,
                expires_at,
                link,
                counters: Counters { missing: generation, ..Counters::default() },
                token,
                run: None,
                follow_up: None,
                discarded: None,
                history,
            }
        })
}

proptest! {
    #[test]
    fn a_row_holds_the_whole_entry(entry in entry()) {
        let row = EntryRow::encode(&entry).unwrap();
        prop_assert_eq!(&decode_entry(row.kind, &row.job_id, &row.json).unwrap(), &entry);
        let seen = entry.seen();
        prop_assert_eq!(row.state, seen.state.as_str());
        prop_assert_eq!(row.generation, i64::from(seen.generation));
        prop_assert_eq!(Some(row.version), version_column(seen.version));
        prop_assert_eq!(row.expires_at, entry.expires_at);
        prop_assert_eq!(row.dead_reason.is_some(), row.state == "dead");
        // A row is due in the microsecond of its instant.
        let due_at = row.due_at.map(|at| Timestamp::from_microsecond(at).unwrap());
        prop_assert_eq!(due_at.is_some(), entry.due_at.is_some());
        if let (Some(column), Some(at)) = (due_at, entry.due_at) {
            prop_assert!(column <= at && at < after(column, Duration::from_micros(1)));
        }
    }

    #[test]
    fn no_text_makes_decoding_panic(json in ".{0,200}") {
        prop_assert!(decode_entry(0, "a", &json).is_err());
        prop_assert!(decode_intent("a", &json).is_err());
    }

    #[test]
    fn kinds_sort_as_keys_do(left in entry(), right in entry()) {
        let columns = key_columns(&left.key).cmp(&key_columns(&right.key));
        prop_assert_eq!(columns, left.key.cmp(&right.key));
    }
}

#[test]
fn an_intent_is_read_as_it_was_written() {
    let written = intent("run", 7, extract("https://example.com/"));
    let row = IntentRow::encode(&written).unwrap();
    assert_eq!((row.run.as_str(), row.position, row.kind, row.state), ("run", 7, 0, "open"));
    assert_eq!(row.due_at, written.due_at.map(Timestamp::as_microsecond));
    assert!(written.due_at > Some(start()));
    assert_eq!(decode_intent(&row.id, &row.json).unwrap(), written);
    assert!(decode_intent("another", &row.json).is_err());
}

#[test]
fn a_version_beyond_the_file_is_refused() {
    let mut row = crate::testing::entry("a");
    row.version = u64::MAX;
    assert!(matches!(EntryRow::encode(&row), Err(EncodeError::Number { column: "version" })));
}
