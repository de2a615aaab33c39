use super::*;

#[test]
fn durations_are_one_whole_number_and_one_unit() {
    for (text, millis) in
        [("250ms", 250), ("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("1d", 86_400_000)]
    {
        assert_eq!(parse_duration(text), Some(Duration::from_millis(millis)), "{text}");
        assert_eq!(show_duration(Duration::from_millis(millis)), text);
    }
    for text in [
        "",
        "30",
        "s",
        "-1s",
        "+1s",
        "1.5s",
        "1 s",
        "1S",
        "1h30m",
        "1e3s",
        "١s",
        "99999999999999999999s",
        "99999999999999999d",
    ] {
        assert_eq!(parse_duration(text), None, "{text}");
    }
}

#[test]
fn sizes_are_bytes_or_binary_units() {
    for (text, bytes) in [("1", 1), ("64KiB", 65_536), ("32MiB", 33_554_432), ("1GiB", 1 << 30)] {
        assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        assert_eq!(show_bytes(bytes), text);
    }
    for text in ["", "1MB", "1mib", "-1", "1.5MiB", "KiB", "99999999999GiB"] {
        assert_eq!(parse_bytes(text), None, "{text}");
    }
}

#[test]
fn receiver_paths_are_plain() {
    let path = |text: &str| Raw::Text(text.to_owned()).http_path();
    assert_eq!(path("/hooks/gleaner"), Some("/hooks/gleaner".to_owned()));
    for text in ["", "webhook", "/healthz", "/a?b", "/a b", "/{id}", "/a%2Fb", "/é"] {
        assert_eq!(path(text), None, "{text}");
    }
}

#[test]
fn event_types_are_listed_once() {
    let events = |text: &str| Raw::Text(text.to_owned()).events().map(|events| events.len());
    assert_eq!(events("a=extract, b=crawl"), Some(2));
    for text in ["", "a", "a=page", "=extract", "a=extract,a=batch"] {
        assert_eq!(events(text), None, "{text}");
    }
}
