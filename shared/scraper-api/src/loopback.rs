//! A loopback server that answers anything, wrong things above all.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::ports::Clock;
use domain::time::{Timestamp, after};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::client::ScraperApi;
use crate::config::{ApiKey, Config};

/// The key that no output may show.
pub(crate) const MARKER_KEY: &str = "marker-key-5f2c";
/// Ample for anything that is answered at all.
pub(crate) const WITHIN: Duration = Duration::from_secs(20);

/// What the server does with one request.
#[derive(Clone)]
pub(crate) enum Reply {
    /// Writes these bytes and keeps the connection.
    Keep(Vec<u8>),
    /// Writes these bytes and closes the connection.
    Close(Vec<u8>),
    /// Writes these bytes and then nothing more, holding the connection.
    Stall(Vec<u8>),
    /// Writes the head and then the block without end.
    Endless(Vec<u8>, Vec<u8>),
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Which connection it came by, counted from 0.
    pub(crate) connection: usize,
    pub(crate) method: String,
    /// Path and query, byte for byte.
    pub(crate) target: String,
    pub(crate) headers: String,
    pub(crate) body: String,
}

/// A server on a port of its own; stopped when dropped.
pub(crate) struct Loopback {
    pub(crate) base_url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl Loopback {
    /// Answers each request with the next reply; the last one is repeated.
    pub(crate) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(accept(listener, Arc::new(replies), Arc::clone(&seen)));
        Self { base_url, seen, task }
    }

    /// Answers every request with this status and JSON body.
    pub(crate) async fn json(status: u16, body: &str) -> Self {
        Self::start(vec![json(status, body)]).await
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn api(&self) -> ScraperApi {
        api_at(&self.base_url)
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn config_at(base_url: &str) -> Config {
    Config::new(base_url, ApiKey::parse(MARKER_KEY).unwrap()).unwrap()
}

pub(crate) fn api_at(base_url: &str) -> ScraperApi {
    ScraperApi::new(config_at(base_url), Arc::new(HandClock::default())).unwrap()
}

/// A whole answer with a right `Content-Length`.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status} Whatever\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        write!(bytes, "{name}: {value}\r\n").unwrap();
    }
    bytes.push_str("\r\n");
    [bytes.as_bytes(), body].concat()
}

pub(crate) fn json(status: u16, body: &str) -> Reply {
    Reply::Keep(answer(status, &[("content-type", "application/json")], body.as_bytes()))
}

async fn accept(listener: TcpListener, replies: Arc<Vec<Reply>>, seen: Arc<Mutex<Vec<Seen>>>) {
    // The set ends its tasks when this task is aborted.
    let mut connections = JoinSet::new();
    let mut count = 0;
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, count, Arc::clone(&replies), Arc::clone(&seen)));
        count += 1;
    }
}

/// Serves one connection until it is closed by either side.
async fn serve(
    mut stream: TcpStream,
    connection: usize,
    replies: Arc<Vec<Reply>>,
    seen: Arc<Mutex<Vec<Seen>>>,
) -> Option<()> {
    loop {
        let request = read_request(&mut stream, connection).await?;
        let reply = {
            let mut seen = seen.lock().unwrap();
            seen.push(request);
            replies.get(seen.len() - 1).or(replies.last()).cloned()?
        };
        match reply {
            Reply::Keep(bytes) => stream.write_all(&bytes).await.ok()?,
            Reply::Close(bytes) => {
                stream.write_all(&bytes).await.ok()?;
                return Some(());
            }
            Reply::Stall(bytes) => {
                stream.write_all(&bytes).await.ok()?;
                std::future::pending::<()>().await;
            }
            Reply::Endless(head, block) => {
                stream.write_all(&head).await.ok()?;
                loop {
                    stream.write_all(&block).await.ok()?;
                }
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream, connection: usize) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut body = bytes[end + 4..].to_vec();
    let length = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length:").map(str::to_owned))
        .map_or(0, |text| text.trim().parse().unwrap());
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    let (first, headers) = head.split_once("\r\n").unwrap_or((&head, ""));
    let mut words = first.split(' ').map(str::to_owned);
    Some(Seen {
        connection,
        method: words.next().unwrap(),
        target: words.next().unwrap(),
        headers: headers.to_owned(),
        body: String::from_utf8(body).unwrap(),
    })
}

/// A clock that moves only when somebody sleeps, and then at once.
pub(crate) struct HandClock(Mutex<Timestamp>);

impl Default for HandClock {
    fn default() -> Self {
        Self(Mutex::new("2026-01-01T00:00:00Z".parse().unwrap()))
    }
}

#[async_trait]
impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }

    async fn sleep(&self, duration: Duration) {
        {
            let mut now = self.0.lock().unwrap();
            *now = after(*now, duration);
        }
        tokio::task::yield_now().await;
    }
}
