use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::request::Builder;
use http::{Method, Request};
use sha2::{Digest as _, Sha256};

use super::*;

const SIGNED: &str = "host;x-amz-content-sha256;x-amz-date";

/// A request as it must be, with a body.
fn request(method: Method, path: &str, body: &[u8]) -> Builder {
    let signature = "0".repeat(64);
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential=AKID/20261130/{REGION}/s3/aws4_request, \
         SignedHeaders={SIGNED}, Signature={signature}"
    );
    Request::builder()
        .method(method)
        .uri(format!("http://127.0.0.1/{path}"))
        .header("host", "127.0.0.1")
        .header("x-amz-date", "20261130T120000Z")
        .header("x-amz-content-sha256", hex::encode(Sha256::digest(body)))
        .header("content-length", body.len())
        .header("authorization", authorization)
}

/// Status and code of the answer to a request, and the answer's body.
fn ask(state: &mut State, builder: Builder, body: &'static [u8]) -> (u16, String, String) {
    let (parts, ()) = builder.body(()).unwrap().into_parts();
    let Fate::Answer(answer) = state.handle(&parts, &Bytes::from_static(body)) else {
        panic!("no answer");
    };
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let code = code.map(|(code, _)| code.to_owned()).unwrap_or_default();
    (answer.status.as_u16(), code, text)
}

fn put(path: &str) -> Builder {
    request(Method::PUT, path, b"abc")
}

fn get(path: &str) -> Builder {
    request(Method::GET, path, b"")
}

/// The same request with another value of a header.
fn with(builder: Builder, name: &'static str, value: &str) -> Builder {
    let mut request = builder.body(()).unwrap();
    request.headers_mut().insert(name, value.parse().unwrap());
    let mut builder = Request::builder().method(request.method()).uri(request.uri());
    for (name, value) in request.headers() {
        builder = builder.header(name, value);
    }
    builder
}

fn key(name: &str) -> String {
    format!("{BUCKET}/{name}")
}

/// DQ-11: the fake refuses what S3 refuses, and whatever this crate does not ask for.
#[test]
fn it_refuses_what_s3_refuses() {
    let mut state = State::default();
    let long = key(&"x".repeat(1_025));
    let bare = Request::builder().method("GET").uri(format!("http://127.0.0.1/{}", key("a")));
    let elsewhere = format!(
        "AWS4-HMAC-SHA256 Credential=AKID/20261130/us-east-1/s3/aws4_request, \
         SignedHeaders={SIGNED}, Signature={}",
        "0".repeat(64)
    );
    let refused = [
        (bare, 403, "AccessDenied"),
        (with(put(&key("a")), "authorization", "Basic abc"), 403, "AccessDenied"),
        (with(put(&key("a")), "authorization", &elsewhere), 400, "AuthorizationHeaderMalformed"),
        (with(put(&key("a")), "content-type", "not/signed"), 403, "AccessDenied"),
        (with(put(&key("a")), "x-amz-content-sha256", "00"), 400, "XAmzContentSHA256Mismatch"),
        (with(put(&key("a")), "content-length", "2"), 400, "IncompleteBody"),
        (with(put(&key("a")), "if-none-match", "\"tag\""), 501, "NotImplemented"),
        (with(put(&key("a")), "if-match", "*"), 501, "NotImplemented"),
        (with(put(&key("a")), "content-encoding", "aws-chunked"), 501, "NotImplemented"),
        (put("another-bucket/a"), 404, "NoSuchBucket"),
        (put(&long), 400, "KeyTooLongError"),
        (put(&key("a%zz")), 400, "InvalidURI"),
        (put(&key("a?partNumber=1&uploadId=2")), 501, "NotImplemented"),
        (put(BUCKET), 501, "NotImplemented"),
        (get(&key("a")), 404, "NoSuchKey"),
        (get(BUCKET), 501, "NotImplemented"),
        (get(&format!("{BUCKET}?list-type=2&delimiter=/")), 501, "NotImplemented"),
        (get(&format!("{BUCKET}?list-type=2&max-keys=-1")), 400, "InvalidArgument"),
        (get(&format!("{BUCKET}?list-type=2&continuation-token=x")), 400, "InvalidArgument"),
        (request(Method::HEAD, &key("a"), b""), 501, "NotImplemented"),
        (request(Method::DELETE, &key("a"), b""), 501, "NotImplemented"),
        (request(Method::POST, &key("a?uploads"), b""), 501, "NotImplemented"),
    ];
    for (builder, status, code) in refused {
        let is_put = builder.method_ref() == Some(&Method::PUT);
        let shown = format!("{builder:?}");
        let (got, said, _) = ask(&mut state, builder, if is_put { b"abc" } else { b"" });
        assert_eq!((got, said.as_str()), (status, code), "{shown}");
    }
    assert!(state.objects.keys().is_empty(), "what is refused leaves nothing");
}

/// Checksums are verified, and all of Amazon's headers are signed and known.
#[test]
fn it_verifies_checksums() {
    let mut state = State::default();
    let all = format!("x-amz-checksum-sha256;{SIGNED}");
    let signing = |builder: Builder| {
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential=AKID/20261130/{REGION}/s3/aws4_request, \
             SignedHeaders={all}, Signature={}",
            "a".repeat(64)
        );
        with(builder, "authorization", &authorization)
    };
    let right = STANDARD.encode(Sha256::digest(b"abc"));
    let wrong = STANDARD.encode(Sha256::digest(b"abd"));
    for (checksum, is_signed, expected) in [
        (&right, true, (200, "")),
        (&right, false, (403, "AccessDenied")),
        (&wrong, true, (400, "BadDigest")),
    ] {
        let builder = with(put(&key("a")), "x-amz-checksum-sha256", checksum);
        let builder = if is_signed { signing(builder) } else { builder };
        let (status, code, _) = ask(&mut state, builder, b"abc");
        assert_eq!((status, code.as_str()), expected);
    }
    let builder = with(put(&key("a")), "x-amz-acl", "public-read");
    assert_eq!(ask(&mut state, builder, b"abc").0, 403, "not signed");
}

/// A put on condition never replaces an object; one without does, and is a creation of its own.
#[test]
fn a_put_on_condition_replaces_nothing() {
    let mut state = State::default();
    let if_absent = || with(put(&key("a%3Db")), "if-none-match", "*");
    assert_eq!(ask(&mut state, if_absent(), b"abc").0, 200);
    for _ in 0..2 {
        let (status, code, _) = ask(&mut state, if_absent(), b"abc");
        assert_eq!((status, code.as_str()), (412, "PreconditionFailed"));
    }
    assert_eq!((state.objects.creations("a=b"), state.objects.keys()), (1, vec!["a=b".to_owned()]));
    assert_eq!(ask(&mut state, put(&key("a%3Db")), b"abc").0, 200);
    assert_eq!(state.objects.creations("a=b"), 2);
    let range = with(get(&key("a%3Db")), "range", "bytes=1-9");
    assert_eq!(ask(&mut state, range, b""), (206, String::new(), "bc".to_owned()));
    let beyond = with(get(&key("a%3Db")), "range", "bytes=3-9");
    assert_eq!(ask(&mut state, beyond, b"").0, 416);
}

/// A listing is in byte order, in pages that a token continues.
#[test]
fn a_listing_is_in_order_and_in_pages() {
    let mut state = State::default();
    for name in ["b", "a/2", "a/1", "a-", "a&<"] {
        state.objects.put_bytes(name, Bytes::new());
    }
    let mut listed = Vec::new();
    let mut token = String::new();
    for _ in 0..3 {
        let next = if token.is_empty() {
            "&start-after=a%26%3C".to_owned()
        } else {
            format!("&continuation-token={token}")
        };
        let list = get(&format!("{BUCKET}?list-type=2&prefix=a&max-keys=1{next}"));
        let (status, _, text) = ask(&mut state, list, b"");
        assert_eq!(status, 200);
        let key = text.split("<Key>").nth(1).and_then(|rest| rest.split("</Key>").next());
        listed.push(key.unwrap().to_owned());
        let next = text.split("<NextContinuationToken>").nth(1);
        let next = next.and_then(|rest| rest.split("</NextContinuationToken>").next());
        token = next.unwrap_or_default().replace('=', "%3D").replace('+', "%2B");
        assert_eq!(text.contains("<IsTruncated>true"), !token.is_empty());
    }
    assert_eq!(listed, ["a-", "a/1", "a/2"]);
    assert!(token.is_empty());
    let all = ask(&mut state, get(&format!("{BUCKET}?list-type=2")), b"").2;
    assert!(all.contains("<Key>a&amp;&lt;</Key>") && all.contains("<KeyCount>5<"), "{all}");
}
