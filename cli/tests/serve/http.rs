//! HTTP/1.1 by hand, so that what goes over the wire is what the test says.

use std::net::SocketAddr;
use std::time::Duration;

use domain::signature::preset::Preset;
use domain::signature::secret::Secret;
use domain::signature::sign::sign;
use domain::time::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longest wait for an answer, after which the test fails.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// The secret of all tests.
pub(crate) const SECRET: &str = "test-secret-1";
/// A delivery, and its HMAC-SHA256 in hex under [`SECRET`].
pub(crate) const V1: &[u8] = br#"{"job_id":"j1","event_type":"extract_completed","id":"d1"}"#;
pub(crate) const V1_HEX: &str = "ea826bf319909e18b85667f620fe669a612ab8a66c889d24005444e23c54baf7";
/// The signature header.
pub(crate) const NAME: &str = "x-webhook-signature";

/// A request, byte for byte.
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// A delivery without a signature.
    pub(crate) fn unsigned(body: &[u8]) -> Self {
        Self { method: "POST", path: "/webhook", headers: Vec::new(), body: body.to_vec() }
    }

    /// A delivery with the signature of its own bytes.
    pub(crate) fn signed(body: &[u8]) -> Self {
        Self::unsigned(body).header(NAME, signature(body, SECRET))
    }

    /// V1 with its signature.
    pub(crate) fn v1() -> Self {
        Self::unsigned(V1).header(NAME, V1_HEX)
    }

    pub(crate) fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    pub(crate) fn at(mut self, path: &'static str) -> Self {
        self.path = path;
        self
    }

    pub(crate) fn by(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let (method, path) = (self.method, self.path);
        let mut bytes = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n").into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        let length = self.body.len();
        bytes.extend(format!("content-length: {length}\r\nconnection: close\r\n\r\n").into_bytes());
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Sends it, and returns the status of the answer.
    pub(crate) async fn send(&self, to: SocketAddr) -> u16 {
        status(&exchange(to, &self.bytes()).await)
    }

    /// Sends it, and returns the whole answer.
    pub(crate) async fn answer(&self, to: SocketAddr) -> String {
        exchange(to, &self.bytes()).await
    }
}

/// The hex signature of some bytes.
pub(crate) fn signature(body: &[u8], secret: &str) -> String {
    let scheme = Preset::BodyHex.scheme().unwrap();
    let secret = Secret::new(secret).unwrap();
    sign(&scheme, &secret, body, "", Timestamp::UNIX_EPOCH).unwrap().remove(0).1
}

/// Writes bytes and reads until the other side closes.
pub(crate) async fn exchange(to: SocketAddr, request: &[u8]) -> String {
    let talk = async {
        let mut stream = TcpStream::connect(to).await.unwrap();
        // A request that is refused early need not be read to its end.
        let _ = stream.write_all(request).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    };
    tokio::time::timeout(ANSWER_MAX, talk).await.expect("an answer comes in time")
}

/// The status of an answer.
pub(crate) fn status(answer: &str) -> u16 {
    let code = answer.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {answer:?}"));
    code.parse().unwrap()
}
