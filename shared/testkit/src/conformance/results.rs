//! [`domain::ports::Results`].

use domain::entry::StoredObject;
use domain::ports::{ErrorKind, PutOutcome};
use futures_util::future::join_all;

use super::ResultsSubject;

const FOLDER: &str = "kind=extract/dt=2026-11-30";

/// Contents that are easily changed on the way.
fn contents() -> Vec<Vec<u8>> {
    vec![
        Vec::new(),
        vec![0],
        b"{\"a\":1}\r\n\n".to_vec(),
        "\u{feff}e\u{301} \u{e9} \u{1f980} \u{2028} \u{fffd} \u{0}".as_bytes().to_vec(),
        // Neither valid UTF-8 nor, in spite of its beginning, gzip.
        vec![0x1f, 0x8b, 0x08, 0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80],
        (0..=255).collect(),
        b"line\n".repeat(100_000),
    ]
}

async fn put(subject: &ResultsSubject, key: &str, content: &[u8]) -> StoredObject {
    match subject.results.put_new(key, content).await.unwrap() {
        PutOutcome::Now(object) => object,
        PutOutcome::Already { .. } => panic!("{key} was there"),
    }
}

/// An object that nobody put is absent.
pub async fn an_object_that_nobody_put_is_absent(subject: &ResultsSubject) {
    let key = format!("{FOLDER}/a.json.gz");
    assert_eq!(subject.results.read(&key).await.unwrap(), None);
    put(subject, &key, b"{}").await;
    assert_eq!(subject.results.read(&format!("{FOLDER}/a.json")).await.unwrap(), None);
    assert_eq!(subject.results.read("kind=batch/a.json.gz").await.unwrap(), None);
}

/// Content comes back byte for byte, plain and packed, with the description that the put gave.
pub async fn content_comes_back_byte_for_byte(subject: &ResultsSubject) {
    for (number, content) in contents().into_iter().enumerate() {
        for end in ["json.gz", "ndjson.gz", "json"] {
            let key = format!("{FOLDER}/object-{number}.{end}");
            let object = put(subject, &key, &content).await;
            assert_eq!(object.key, key);
            assert!(!object.empty && !object.unsettled);
            let found = subject.results.read(&key).await.unwrap();
            assert_eq!(found, Some((object, content.clone())), "{key}");
        }
    }
}

/// A second put finds the first one's object, whatever the content, and changes nothing.
pub async fn a_second_put_finds_the_object(subject: &ResultsSubject) {
    for key in [format!("{FOLDER}/a.json.gz"), "kind=batch/dt=2026-11-30/a/_manifest.json".into()] {
        let object = put(subject, &key, b"first").await;
        for content in [&b"first"[..], b"second", b"", &[0; 1_000]] {
            let found = subject.results.put_new(&key, content).await.unwrap();
            let first = PutOutcome::Already { object: object.clone(), content: b"first".to_vec() };
            assert_eq!(found, first, "{key}");
        }
        assert_eq!(subject.results.read(&key).await.unwrap(), Some((object, b"first".to_vec())));
    }
}

/// Of many puts at a time one succeeds, and the others find its object.
pub async fn one_of_many_puts_succeeds(subject: &ResultsSubject) {
    let key = format!("{FOLDER}/a.json.gz");
    let contents: Vec<_> = (0..50).map(|number| format!("content {number}").repeat(50)).collect();
    let puts = contents.iter().map(|content| subject.results.put_new(&key, content.as_bytes()));
    let outcomes: Vec<_> = join_all(puts).await.into_iter().map(Result::unwrap).collect();
    let mut winners = outcomes.iter().zip(&contents).filter_map(|(put, content)| match put {
        PutOutcome::Now(object) => Some((object, content)),
        PutOutcome::Already { .. } => None,
    });
    let (won, written) = winners.next().expect("one put succeeds");
    assert_eq!(winners.next(), None);
    for put in &outcomes {
        if let PutOutcome::Already { object, content } = put {
            assert_eq!((object, content.as_slice()), (won, written.as_bytes()));
        }
    }
}

/// The same content has the same size and checksum under any key, now and later.
pub async fn the_same_content_has_the_same_bytes(subject: &ResultsSubject) {
    for (number, content) in contents().into_iter().enumerate() {
        let mut objects = Vec::new();
        for name in ["a", "b"] {
            let key = format!("{FOLDER}/{name}-{number}.json.gz");
            let object = put(subject, &key, &content).await;
            objects.push((object.bytes, object.sha256));
        }
        assert_eq!(objects[0], objects[1]);
    }
}

/// The description is that of the bytes as they lie there: of the content itself where it is not
/// packed.
pub async fn the_description_is_true(subject: &ResultsSubject) {
    let object = put(subject, "kind=batch/dt=2026-11-30/a/_manifest.json", b"abc").await;
    assert_eq!(object.bytes, 3);
    let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(object.sha256, sha256);
    let packed = put(subject, &format!("{FOLDER}/a.json.gz"), &b"abc".repeat(1_000)).await;
    assert!((20..1_000).contains(&packed.bytes), "{} bytes", packed.bytes);
    assert_ne!(packed.sha256, sha256);
}

/// A large result is stored and read whole.
pub async fn a_large_result_is_stored_whole(subject: &ResultsSubject) {
    // Neither repetitive nor random: it shrinks, but not to nothing.
    let numbers = (0..600_000_u64).map(|number| number.wrapping_mul(0x9e37_79b9));
    let content = numbers.fold(String::new(), |text, number| text + &format!("{number:x},"));
    let key = format!("{FOLDER}/large.json.gz");
    let object = put(subject, &key, content.as_bytes()).await;
    assert!(object.bytes < u64::try_from(content.len()).unwrap());
    let found = subject.results.read(&key).await.unwrap();
    assert!(found == Some((object, content.into_bytes())));
}

/// Keys come in byte order, under any prefix, from any place, up to the limit.
pub async fn keys_are_listed_in_order(subject: &ResultsSubject) {
    let mut keys = vec![
        "kind=extract/dt=2026-11-30/a-b.json.gz",
        "kind=extract/dt=2026-11-30/a.json.gz",
        "kind=extract/dt=2026-11-30/a0.json.gz",
        "kind=extract/dt=2026-11-30/_4a.json.gz",
        "kind=extract/dt=2026-12-01/a.json.gz",
        "kind=batch/dt=2026-11-30/a/_manifest.json",
        "kind=batch/dt=2026-11-30/a/r-part-00001.ndjson.gz",
        "kind=batch/dt=2026-11-30/a-b/r-part-00001.ndjson.gz",
        "kind=batch/dt=2026-11-30/a0/r-part-00001.ndjson.gz",
    ];
    for key in &keys {
        put(subject, key, b"{}").await;
    }
    keys.sort_unstable();
    let prefixes = [
        "",
        "kind=",
        "kind=extract/",
        "kind=extract/dt=2026-11",
        "kind=extract/dt=2026-11-30/a",
        "kind=batch/dt=2026-11-30/a/",
        "kind=batch/dt=2026-11-30/a",
        "kind=crawl/",
        keys[0],
    ];
    for prefix in prefixes {
        for after in keys.iter().copied().map(Some).chain([None, Some("a"), Some("z")]) {
            for limit in [0, 1, 2, 9, 100] {
                let listed = subject.results.list(prefix, after, limit).await.unwrap();
                let expected: Vec<_> = keys
                    .iter()
                    .filter(|key| key.starts_with(prefix))
                    .filter(|key| after.is_none_or(|after| **key > after))
                    .take(usize::try_from(limit).unwrap())
                    .collect();
                let listed: Vec<_> = listed.iter().collect();
                assert_eq!(listed, expected, "{prefix:?} {after:?} {limit}");
            }
        }
    }
}

/// Keys that differ in a byte are objects of their own, also the longest.
pub async fn long_and_similar_keys_are_objects_of_their_own(subject: &ResultsSubject) {
    let longest = format!("{FOLDER}/{}.json.gz", "x".repeat(200));
    let similar = format!("{FOLDER}/{}y.json.gz", "x".repeat(199));
    let keys = [&longest, &similar, "a", "a_", "a-", "a.json", "a.json.gz", "a.gz"];
    for key in keys {
        put(subject, key, key.as_bytes()).await;
    }
    for key in keys {
        let found = subject.results.read(key).await.unwrap().expect("an object");
        assert_eq!(found.1, key.as_bytes());
    }
}

/// A key outside the layout is refused by every call, and nothing is stored.
pub async fn a_key_outside_the_layout_is_refused(subject: &ResultsSubject) {
    let long = "x".repeat(300);
    let deep = "x/".repeat(600);
    for key in [
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "../a",
        "a/../b",
        "a/./b",
        ".a",
        "a\\b",
        "A",
        "a b",
        "a\n",
        "a\0",
        "a#1",
        "a%2fb",
        "c:a",
        "caf\u{e9}",
        "a*",
        "a?",
        &long,
        &deep,
    ] {
        let error = subject.results.put_new(key, b"{}").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{key:?}");
        let error = subject.results.read(key).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{key:?}");
    }
    for prefix in ["/", "../", "a/../", "A", "a//"] {
        let error = subject.results.list(prefix, None, 1).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{prefix:?}");
    }
    assert!(subject.results.list("", None, 10).await.unwrap().is_empty());
}

/// A damaged object is an error that names its key, to a reader and to a second put; it is not
/// absent, and not written over.
pub async fn a_damaged_object_is_named(subject: &ResultsSubject) {
    let Some(spoil) = &subject.spoil else { return };
    let key = format!("{FOLDER}/damaged.json.gz");
    put(subject, &key, b"a result that matters").await;
    spoil(&key);
    for error in [
        subject.results.read(&key).await.expect_err("a damaged object"),
        subject.results.put_new(&key, b"another").await.expect_err("a damaged object"),
        subject.results.read(&key).await.expect_err("a damaged object"),
    ] {
        assert_eq!(error.kind, ErrorKind::Corrupt);
        assert!(format!("{error:?}").contains(&key), "{error:?}");
    }
}
