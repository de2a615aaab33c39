use super::*;
use crate::envelope::EventType;
use crate::ports::{Delivery, DeliveryStatus};

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(minute * 60).unwrap()
}

/// A page of rows that were made at these minutes.
fn page(minutes: impl IntoIterator<Item = i64>) -> DeliveryPage {
    let row = |minute| Delivery {
        id: format!("d{minute}"),
        event_type: EventType::ExtractCompleted,
        job_id: None,
        attempt_number: None,
        status: DeliveryStatus::Failed,
        http_status: None,
        delivered_at: None,
        created_at: Some(at(minute)),
    };
    let deliveries = minutes.into_iter().map(row).collect();
    DeliveryPage { deliveries, unreadable: 0, page_count: None }
}

/// The pages that are read of a log, by the page's number.
fn pages_read(mut reading: Reading, log: impl Fn(u32) -> DeliveryPage) -> (Vec<u32>, Reading) {
    let mut read = Vec::new();
    loop {
        read.push(reading.page);
        if reading.note(&log(reading.page), false) == Next::End {
            return (read, reading);
        }
        assert!(read.len() < 100, "{read:?}");
    }
}

fn begin(mode: Mode, read_to: Option<i64>) -> Reading {
    Reading::begin(mode, read_to.map(at), at(1_000))
}

/// Five pages of ten minutes each, and an empty one.
fn newest_first(number: u32) -> DeliveryPage {
    let number = i64::from(number);
    if number > 5 { page([]) } else { page((60 - number * 10..70 - number * 10).rev()) }
}

fn oldest_first(number: u32) -> DeliveryPage {
    let number = i64::from(number);
    if number > 5 { page([]) } else { page(number * 10..number * 10 + 10) }
}

#[test]
fn a_whole_reading_shows_the_order() {
    let none = |number: u32| match number {
        1 => page([10, 50]),
        2 => page([20]),
        3 => page([40]),
        _ => page([]),
    };
    let short = |number: u32| page((number == 1).then_some(5));
    let instant = |number: u32| if number < 4 { page([7]) } else { page([]) };
    for (log, order, tail) in [
        (&newest_first as &dyn Fn(u32) -> DeliveryPage, Order::NewestFirst, 5),
        (&oldest_first, Order::OldestFirst, 5),
        (&none, Order::Unknown, 3),
        (&short, Order::Unknown, 1),
        (&instant, Order::Unknown, 3),
    ] {
        let (read, reading) = pages_read(begin(Mode::Whole, Some(1_000)), log);
        assert_eq!(read.len(), usize::try_from(tail + 1).unwrap());
        assert_eq!((reading.order(), reading.tail), (Some(order), tail));
    }
}

/// The cost is in proportion to what is new, from whichever end it comes.
#[test]
fn only_what_is_new_is_read() {
    for (read_to, expected) in [(60, vec![1]), (59, vec![1, 2]), (45, vec![1, 2, 3])] {
        assert_eq!(pages_read(begin(Mode::Front, Some(read_to)), newest_first).0, expected);
    }
    let back = |tail| begin(Mode::Back { tail }, Some(60));
    assert_eq!(pages_read(back(5), oldest_first).0, [5, 6]);
    assert_eq!(pages_read(back(3), oldest_first).0, [3, 4, 5, 6]);
    // The log has become shorter, or its rows have moved to earlier pages.
    assert_eq!(pages_read(back(8), oldest_first).0, [8, 7, 6, 5, 9]);
    let back = begin(Mode::Back { tail: 5 }, Some(35));
    assert_eq!(pages_read(back, oldest_first).0, [5, 4, 3, 2, 6]);
    let (read, reading) = pages_read(begin(Mode::Back { tail: 1 }, None), |_| page([]));
    assert_eq!((read, reading.tail), (vec![1, 2], 1));
}

/// What is thought to come newest first and does not is read whole, and is no order any more.
#[test]
fn an_order_that_is_not_kept_is_given_up() {
    let turned = |number: u32| match number {
        1 => page([50]),
        2 => page([90]),
        3..6 => page([10]),
        _ => page([]),
    };
    let (read, reading) = pages_read(begin(Mode::Front, Some(40)), turned);
    assert_eq!((read, reading.order()), (vec![1, 2, 3, 4, 5, 6], Some(Order::Unknown)));
}

/// SC-12: rows without a time, and entries that cannot be read, may be new.
#[test]
fn what_has_no_time_may_be_new() {
    let undated = |number: u32| {
        let mut page = newest_first(number);
        if let (2, Some(row)) = (number, page.deliveries.first_mut()) {
            row.created_at = None;
        }
        page
    };
    assert_eq!(pages_read(begin(Mode::Front, Some(59)), undated).0, [1, 2, 3]);
    let unreadable = |number: u32| {
        let unreadable = u32::from(number == 2);
        DeliveryPage { unreadable, ..newest_first(number) }
    };
    assert_eq!(pages_read(begin(Mode::Front, Some(59)), unreadable).0, [1, 2, 3]);
}

/// SC-06: a log that ignores the page number ends all the same.
#[test]
fn a_log_that_repeats_itself_ends() {
    let mut reading = begin(Mode::Whole, None);
    assert_eq!(reading.note(&page([1, 2]), false), Next::Page);
    assert_eq!(reading.note(&page([1, 2]), true), Next::Page);
    assert_eq!(reading.note(&page([1, 2]), true), Next::Page);
    assert!(!reading.is_flawed);
    assert_eq!(reading.note(&page([1, 2]), true), Next::End);
    assert!(reading.is_flawed);
}
