//! A service that answers as it is told.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aws_client::{Patience, SdkConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// What becomes of one request.
#[derive(Clone)]
pub(crate) enum Answer {
    /// An answer with an error's code and text, as AWS spells it.
    Error { status: u16, code: &'static str, message: String },
    /// An answer with this body.
    Body { status: u16, body: String },
    /// The beginning of an answer, and the connection's end.
    Half,
    /// The connection's end.
    Cut,
    /// Silence.
    Silence,
}

impl Answer {
    pub(crate) fn error(status: u16, code: &'static str, message: &str) -> Self {
        Self::Error { status, code, message: message.to_owned() }
    }

    fn bytes(&self) -> Option<String> {
        let (status, body) = match self {
            Self::Error { status, code, message } => (
                *status,
                serde_json::json!({ "__type": format!("com.amazonaws.it#{code}"), "Message": message })
                    .to_string(),
            ),
            Self::Body { status, body } => (*status, body.clone()),
            Self::Half => (200, "{\"SecretString\":\"hush".to_owned()),
            Self::Cut | Self::Silence => return None,
        };
        let length = body.len() + if matches!(self, Self::Half) { 100 } else { 0 };
        Some(format!(
            "HTTP/1.1 {status} It\r\nContent-Type: application/x-amz-json-1.1\r\n\
             x-amzn-RequestId: request-7\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
    }
}

#[derive(Default)]
struct Seen {
    answers: Vec<Answer>,
    heads: Vec<String>,
}

/// The service: it gives its answers in turn, the last one again and again.
#[derive(Clone)]
pub(crate) struct Wire {
    seen: Arc<Mutex<Seen>>,
    connections: Arc<AtomicUsize>,
    pub(crate) address: String,
}

impl Wire {
    pub(crate) async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let wire = Self::at(&listener, answers);
        let served = wire.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let served = served.clone();
                tokio::spawn(async move { served.serve(stream).await });
            }
        });
        wire
    }

    /// A service whose connections somebody else accepts.
    pub(crate) fn at(listener: &TcpListener, answers: Vec<Answer>) -> Self {
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Seen { answers, heads: Vec::new() }));
        Self { seen, connections: Arc::default(), address }
    }

    /// The heads of the requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.seen.lock().unwrap().heads.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        while let Some(head) = read(&mut stream).await {
            let answer = {
                let mut seen = self.seen.lock().unwrap();
                seen.heads.push(head);
                let answer = seen.answers[0].clone();
                if seen.answers.len() > 1 {
                    seen.answers.remove(0);
                }
                answer
            };
            match answer.bytes() {
                Some(bytes) => stream.write_all(bytes.as_bytes()).await.unwrap(),
                None if matches!(answer, Answer::Silence) => std::future::pending().await,
                None => return,
            }
            if matches!(answer, Answer::Half) {
                return;
            }
        }
    }

    /// The configuration of a function whose calls come here.
    pub(crate) fn config(&self, patience: Patience) -> SdkConfig {
        let mut variables = variables();
        variables.insert("AWS_ENDPOINT_URL".to_owned(), format!("http://{}", self.address));
        config(&variables, patience)
    }
}

/// Reads one request; gives its head in lower case.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length: usize = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        if bytes.len() >= end + 4 + length {
            return Some(head);
        }
    }
}

pub(crate) fn variables() -> BTreeMap<String, String> {
    [
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "AKIDHUSH"),
        ("AWS_SECRET_ACCESS_KEY", "hush-secret-key"),
        ("AWS_SESSION_TOKEN", "hush-session-token"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect()
}

pub(crate) fn config(variables: &BTreeMap<String, String>, patience: Patience) -> SdkConfig {
    aws_client::from_environment(&|name| variables.get(name).cloned(), patience).unwrap()
}
