use super::*;
use crate::ports::DeliveryPage;

const OVERLAP: Duration = Duration::from_mins(15);

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(minute * 60).unwrap()
}

fn id(text: &str) -> WebhookId {
    WebhookId::parse(text).unwrap()
}

/// A reading of one page that ended, whose newest row is of this minute.
fn ended(newest: i64) -> Reading {
    Reading { newest: Some(at(newest)), ..Reading::begin(Mode::Front, None, at(10_000)) }
}

/// A log is read whole at first, then from its newer end, and whole again once a day.
#[test]
fn a_log_is_read_whole_once_a_day() {
    let mut log = Log::default();
    assert_eq!(log.next(false, at(0)).mode, Mode::Whole);
    log.whole_at = Some(at(0));
    log.tail = 7;
    for (order, mode) in [
        (Order::Unknown, Mode::Whole),
        (Order::NewestFirst, Mode::Front),
        (Order::OldestFirst, Mode::Back { tail: 7 }),
    ] {
        log.order = order;
        assert_eq!(log.next(false, at(24 * 60 - 1)).mode, mode);
        assert_eq!(log.next(true, at(1)).mode, Mode::Whole);
        assert_eq!(log.next(false, at(24 * 60)).mode, Mode::Whole);
    }
}

/// What was read is behind us once it is sure; what is on its way holds its own place.
#[test]
fn what_was_read_is_behind_us_but_for_what_is_on_its_way() {
    let mut log = Log::default();
    assert!(!log.read(&ended(100), OVERLAP, at(101)));
    assert_eq!((log.read_to, log.candidate), (Some(at(85)), None));
    let pending = Reading { pending: Some(at(90)), ..ended(200) };
    assert!(!log.read(&pending, OVERLAP, at(201)));
    assert_eq!(log.read_to, Some(at(90)));
    // What came while it was read may be on a page that was read before.
    let slow = Reading { began: at(150), ..ended(300) };
    assert!(!log.read(&slow, OVERLAP, at(301)));
    assert_eq!(log.read_to, Some(at(135)));
}

/// SC-05: several pages count once another reading has found nothing that was missed; SC-04: what
/// can never be confirmed is let go.
#[test]
fn several_pages_are_confirmed_by_the_next_reading() {
    let pages = |missed| Reading { is_long: true, missed, ..ended(100) };
    let mut log = Log::default();
    assert!(!log.read(&pages(0), OVERLAP, at(101)));
    assert_eq!((log.read_to, log.candidate), (None, Some((at(85), 0))));
    assert!(log.should_be_known(Some(at(85))) && log.should_be_known(None));
    assert!(!log.should_be_known(Some(at(86))));
    assert!(!log.read(&pages(1), OVERLAP, at(102)));
    assert_eq!((log.read_to, log.candidate), (None, Some((at(85), 1))));
    assert!(!log.read(&pages(0), OVERLAP, at(103)));
    assert_eq!((log.read_to, log.candidate), (Some(at(85)), None));

    let mut log = Log::default();
    let flawed = Reading { is_flawed: true, ..ended(100) };
    let unsure: Vec<_> = (0..5).map(|_| log.read(&flawed, OVERLAP, at(101))).collect();
    assert_eq!(unsure, [false, false, false, false, true]);
    assert_eq!(log.read_to, Some(at(85)));
}

/// The stored form: another version's is not read, and the logs are read anew.
#[test]
fn the_stored_form_is_stable() {
    let mut reading = Reading::begin(Mode::Back { tail: 3 }, Some(at(1)), at(2));
    let none = DeliveryPage { deliveries: Vec::new(), unreadable: 0, page_count: None };
    let _ = reading.note(&none, false);
    let log = Log {
        read_to: Some(at(1)),
        candidate: Some((at(2), 1)),
        order: Order::OldestFirst,
        tail: 3,
        whole_at: Some(at(0)),
        reading: Some(reading),
    };
    let saved = Saved { logs: [(id("w"), log)].into(), read_at: Some(at(3)), tried_at: None };
    let json = serde_json::to_string(&saved).unwrap();
    insta::assert_snapshot!(json);
    assert_eq!(serde_json::from_str::<Saved>(&json).unwrap(), saved);
    let later = json.replace("\"format\":1", "\"format\":2");
    assert_eq!(serde_json::from_str::<Saved>(&later).unwrap(), Saved::default());
}

#[test]
fn of_two_runs_the_one_that_is_ahead_is_kept_for_each_log() {
    let log = |minute| Log { read_to: Some(at(minute)), ..Log::default() };
    let logs = |logs: [(&str, Log); 2]| -> BTreeMap<_, _> {
        logs.into_iter().map(|(name, log)| (id(name), log)).collect()
    };
    let ours =
        Saved { logs: logs([("a", log(9)), ("b", log(1))]), read_at: Some(at(1)), tried_at: None };
    let theirs =
        Saved { logs: logs([("a", log(2)), ("b", log(3))]), read_at: None, tried_at: Some(at(4)) };
    let merged = Saved::merged(theirs, &ours);
    assert_eq!(merged.logs, logs([("a", log(9)), ("b", log(3))]));
    assert_eq!((merged.read_at, merged.tried_at), (Some(at(1)), Some(at(4))));
}
