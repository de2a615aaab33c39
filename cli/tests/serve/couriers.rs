//! Deliveries over keep-alive connections, as a platform sends them: what gets no 2xx is sent
//! again.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::http::{NAME, SECRET, signature};

/// Longest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 4_096;

/// What became of the deliveries so far.
#[derive(Debug, Default, Clone)]
pub(crate) struct Post {
    /// Jobs whose delivery got a 2xx.
    pub(crate) acknowledged: BTreeSet<String>,
    /// Requests that are written and not answered.
    pub(crate) in_flight: usize,
    /// Requests that never got an answer.
    pub(crate) cut_off: usize,
    /// Requests that were answered 5xx.
    pub(crate) put_off: usize,
    waiting: VecDeque<String>,
}

/// The deliveries, and where they go to.
pub(crate) struct Couriers {
    total: usize,
    post: Mutex<Post>,
    /// How many are acknowledged.
    acknowledged: watch::Sender<usize>,
    /// Where the server listens, while there is one.
    server: watch::Sender<Option<SocketAddr>>,
}

impl Couriers {
    pub(crate) fn new(jobs: &[String]) -> Arc<Self> {
        let post = Post { waiting: jobs.iter().cloned().collect(), ..Post::default() };
        Arc::new(Self {
            total: jobs.len(),
            post: Mutex::new(post),
            acknowledged: watch::Sender::new(0),
            server: watch::Sender::new(None),
        })
    }

    pub(crate) fn direct_to(&self, server: Option<SocketAddr>) {
        self.server.send_replace(server);
    }

    pub(crate) fn post(&self) -> Post {
        self.post.lock().unwrap().clone()
    }

    /// Requests on their way at this moment.
    pub(crate) fn in_flight(&self) -> usize {
        self.post.lock().unwrap().in_flight
    }

    /// Waits until so many are acknowledged.
    pub(crate) async fn acknowledged(&self, count: usize) {
        self.acknowledged.subscribe().wait_for(|now| *now >= count).await.unwrap();
    }

    /// Delivers over one connection at a time until everything is acknowledged.
    pub(crate) async fn deliver(self: Arc<Self>) {
        let mut connection = None;
        let mut acknowledged = self.acknowledged.subscribe();
        loop {
            let taken = self.post.lock().unwrap().waiting.pop_front();
            let Some(job_id) = taken else {
                // What others have on its way may come back, or be the last of all.
                if *acknowledged.borrow_and_update() == self.total {
                    return;
                }
                acknowledged.changed().await.unwrap();
                continue;
            };
            let stream = match connection.take() {
                Some(stream) => stream,
                None => self.connect().await,
            };
            connection = self.one(stream, job_id).await;
        }
    }

    /// Connects as soon as there is a server that lets it.
    async fn connect(&self) -> TcpStream {
        let mut server = self.server.subscribe();
        loop {
            let addr = server.wait_for(Option::is_some).await.unwrap().unwrap();
            match TcpStream::connect(addr).await {
                Ok(stream) => {
                    stream.set_nodelay(true).unwrap();
                    return stream;
                }
                // It was killed meanwhile; the next one is announced.
                Err(_) => server.changed().await.unwrap(),
            }
        }
    }

    /// Delivers one, and returns the connection if it can be used again.
    async fn one(&self, mut stream: TcpStream, job_id: String) -> Option<TcpStream> {
        self.post.lock().unwrap().in_flight += 1;
        let answer = exchange(&mut stream, &job_id).await;
        let mut post = self.post.lock().unwrap();
        post.in_flight -= 1;
        match answer {
            Some(200..=299) => {
                assert!(post.acknowledged.insert(job_id), "no delivery is sent after its 2xx");
                self.acknowledged.send_modify(|count| *count += 1);
            }
            Some(500..=599) => {
                post.put_off += 1;
                post.waiting.push_back(job_id);
            }
            Some(other) => panic!("a genuine delivery was answered {other}"),
            None => {
                post.cut_off += 1;
                post.waiting.push_back(job_id);
            }
        }
        // Whoever found nothing to deliver looks again.
        self.acknowledged.send_modify(|_| {});
        answer.map(|_| stream)
    }
}

/// The status, or `None` if the connection ended before it.
async fn exchange(stream: &mut TcpStream, job_id: &str) -> Option<u16> {
    let body = format!(r#"{{"job_id":"{job_id}","event_type":"extract_completed"}}"#);
    let request = format!(
        "POST /webhook HTTP/1.1\r\nhost: localhost\r\n{NAME}: {}\r\ncontent-length: {}\r\n\r\n{body}",
        signature(body.as_bytes(), SECRET),
        body.len()
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        assert!(answer.len() < ANSWER_BYTES_MAX, "an answer without a body");
        if stream.read_buf(&mut answer).await.ok()? == 0 {
            assert!(answer.is_empty(), "half an answer");
            return None;
        }
    }
    let status = answer.split(|byte| *byte == b' ').nth(1)?;
    std::str::from_utf8(status).ok()?.parse().ok()
}
