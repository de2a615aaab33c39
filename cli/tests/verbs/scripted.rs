//! A platform that answers what a test tells it, where the simulator is too well-behaved.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What happens to a call.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Status, further header lines, body.
    Answer(u16, &'static str, String),
    /// The connection closes without an answer.
    Reset,
    /// Nothing, until the client gives up.
    Hang,
}

type Script = dyn Fn(usize, &str) -> Reply + Send + Sync;

/// A running server; ends when it is dropped.
pub(crate) struct Scripted {
    pub(crate) url: String,
    calls: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Scripted {
    /// Serves calls one connection each; the script gets the call's number, from 0, and its
    /// request line.
    pub(crate) async fn start(
        script: impl Fn(usize, &str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let calls = Arc::new(AtomicUsize::new(0));
        let (script, counted): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&calls));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&counted)));
            }
        });
        Self { url, calls, task }
    }

    /// Calls that came in so far.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

async fn serve(mut stream: TcpStream, script: Arc<Script>, calls: Arc<AtomicUsize>) {
    let Some(line) = read_request(&mut stream).await else { return };
    match script(calls.fetch_add(1, Ordering::SeqCst), &line) {
        Reply::Answer(status, headers, body) => {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\n\
                 content-length: {length}\r\nconnection: close\r\n{headers}\r\n"
            );
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(body.as_bytes()).await;
        }
        Reply::Reset => {}
        Reply::Hang => {
            // Ends when the client closes the connection.
            let _ = stream.read(&mut [0]).await;
        }
    }
}

/// Reads a request with its body; returns its first line.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let read = stream.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        if body.len() >= length {
            return head.lines().next().map(str::to_owned);
        }
    }
}

/// An extract job's answer.
pub(crate) fn job(id: &str, status: &str) -> Reply {
    let data =
        if status == "completed" { r#"{"html":"<p>x</p>","markdown":null}"# } else { "null" };
    let error = if status == "failed" {
        r#"{"code":"PERMANENT_BLOCK","message":"blocked","retryable":false}"#
    } else {
        "null"
    };
    let body = format!(
        r#"{{"job_id":"{id}","status":"{status}","created_at":"2026-11-30T00:00:00Z","data":{data},"error":{error}}}"#
    );
    Reply::Answer(200, "", body)
}

/// An error of the platform.
pub(crate) fn error(status: u16, headers: &'static str, code: &str, retryable: bool) -> Reply {
    let body = format!(r#"{{"code":"{code}","message":"scripted","retryable":{retryable}}}"#);
    Reply::Answer(status, headers, body)
}
