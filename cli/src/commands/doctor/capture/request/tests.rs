use super::*;

const BODY: &str = r#"{"event":"extract_completed"}"#;

/// What is read out of a file with this content.
fn read_all(content: impl AsRef<[u8]>) -> Result<Vec<Delivery>, CliError> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("delivery.http");
    std::fs::write(&file, content).unwrap();
    read(&file)
}

fn first(content: impl AsRef<[u8]>) -> Delivery {
    read_all(content).unwrap().remove(0)
}

/// FD-01, FD-08: the same delivery however somebody kept it.
#[test]
fn a_delivery_is_read_from_every_form() {
    let length = BODY.len();
    let base64 = STANDARD.encode(BODY);
    let text = serde_json::to_string(BODY).unwrap();
    for content in [
        format!("POST /webhook HTTP/1.1\r\nX-Sig: a\r\n\r\n{BODY}"),
        format!("POST /webhook HTTP/1.1\nX-Sig:   a\n\n{BODY}"),
        format!("\r\nPOST /webhook HTTP/1.1\r\nx-sig: a\r\nContent-Length: {length}\r\n\r\n{BODY}"),
        format!(
            "POST /webhook HTTP/1.1\r\nX-Sig: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{}\r\n{:x}\
             \r\n{}\r\n0\r\n\r\n",
            &BODY[..4],
            length - 4,
            &BODY[4..]
        ),
        // Chunks that a tool has put together already.
        format!("POST /webhook HTTP/1.1\r\nX-Sig: a\r\nTransfer-Encoding: chunked\r\n\r\n{BODY}"),
        format!(
            r#"{{"version":"2.0","rawPath":"/webhook","headers":{{"x-sig":"a"}},"body":{text},"isBase64Encoded":false}}"#
        ),
        format!(
            r#" {{"rawPath":"/webhook","headers":{{"x-sig":"a"}},"body":"{base64}","isBase64Encoded":true}}"#
        ),
        format!(
            r#"{{"path":"/webhook","headers":null,"multiValueHeaders":{{"X-Sig":["a"]}},"body":{text}}}"#
        ),
    ] {
        let delivery = first(&content);
        assert_eq!((delivery.path.as_str(), delivery.header("X-SIG")), ("/webhook", Some("a")));
        assert_eq!(delivery.body, BODY.as_bytes(), "{content}");
    }
}

/// SG-01: an editor's line end is taken off in a second reading, never in the first.
#[test]
fn a_line_end_at_the_end_is_read_both_ways() {
    let deliveries = read_all(format!("POST / HTTP/1.1\r\na: b\r\n\r\n{BODY}\r\n")).unwrap();
    let bodies: Vec<_> = deliveries.iter().map(|it| it.body.len() - BODY.len()).collect();
    assert_eq!(bodies, [2, 0]);
    let declared = format!("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n{BODY}");
    assert_eq!(read_all(declared).unwrap()[1].body, &BODY.as_bytes()[..5]);
    assert_eq!(read_all(format!("POST / HTTP/1.1\r\na: b\r\n\r\n{BODY}")).unwrap().len(), 1);
}

#[test]
fn what_is_written_is_read_back() {
    let body = vec![0, 13, 10, 0xff, b'{'];
    let headers = vec![("x-sig".to_owned(), b"a, b".to_vec()), ("x-sig".to_owned(), b"c".to_vec())];
    let delivery = Delivery { path: "/a/b".to_owned(), headers, body };
    assert_eq!(first(delivery.to_bytes()), delivery);
}

/// Whatever a file holds, it is a delivery or an error of its own.
#[test]
fn what_is_no_delivery_is_refused() {
    let many = "x-many: a\r\n".repeat(200);
    for content in [
        "",
        "garbage",
        "{",
        "{}",
        r#"{"headers":{}}"#,
        r#"{"headers":{"a":"b"},"body":"!!!","isBase64Encoded":true}"#,
        r#"{"headers":{"a":"b"},"body":7}"#,
        "POST / HTTP/1.1\r\n",
        "POST / HTTP/1.1\r\nna me: x\r\n\r\n",
        &format!("POST / HTTP/1.1\r\n{many}\r\n"),
        "\u{0}\u{1}\u{2}",
    ] {
        let error = read_all(content).unwrap_err();
        assert_eq!(error.exit, Exit::Data, "{content:?}");
    }
    let missing = read(Path::new("/none/such")).unwrap_err();
    assert_eq!(missing.exit, Exit::System);
}

/// OB-01: `Debug` shows neither headers nor body.
#[test]
fn debug_shows_nothing_of_it() {
    let told = format!("{:?}", first(format!("POST / HTTP/1.1\r\nx-sig: marker\r\n\r\n{BODY}")));
    assert!(!told.contains("marker") && !told.contains("extract"), "{told}");
}
