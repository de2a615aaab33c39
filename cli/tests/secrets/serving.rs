//! `gleaner serve` as a process whose talk is kept.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Longest wait for a process or for what it says, after which the test fails.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// A server that has said where it listens.
pub(crate) struct Serving {
    pub(crate) addr: SocketAddr,
    child: Child,
    /// Both outputs, as far as they have come.
    talk: watch::Receiver<String>,
    readers: Vec<JoinHandle<()>>,
}

impl Serving {
    pub(crate) async fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (said, mut talk) = watch::channel(String::new());
        let readers = vec![
            tokio::spawn(read(child.stdout.take().unwrap(), said.clone())),
            tokio::spawn(read(child.stderr.take().unwrap(), said)),
        ];
        wait_for(&mut talk, "/webhook").await;
        let addr = {
            let talk = talk.borrow();
            let (_, rest) = talk.split_once("http://").unwrap();
            let (addr, _) = rest.split_once("/webhook").unwrap();
            addr.parse().unwrap()
        };
        Self { addr, child, talk, readers }
    }

    /// Waits until it has said something.
    pub(crate) async fn wait_for(&mut self, text: &str) {
        wait_for(&mut self.talk, text).await;
    }

    /// Sends it a signal, and returns its exit code and everything that it ever said.
    pub(crate) async fn stop(mut self, signal: &str) -> (Option<i32>, String) {
        let id = self.child.id().unwrap().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status().await.unwrap();
        assert!(sent.success());
        let ended = tokio::time::timeout(WAIT_MAX, self.child.wait()).await.expect("it ends");
        for reader in self.readers {
            tokio::time::timeout(WAIT_MAX, reader).await.expect("its outputs end").unwrap();
        }
        (ended.unwrap().code(), self.talk.borrow().clone())
    }
}

async fn read(output: impl AsyncRead + Unpin, said: watch::Sender<String>) {
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        said.send_modify(|talk| {
            talk.push_str(&line);
            talk.push('\n');
        });
    }
}

async fn wait_for(talk: &mut watch::Receiver<String>, text: &str) {
    let waited = tokio::time::timeout(WAIT_MAX, talk.wait_for(|talk| talk.contains(text)));
    let is_said = matches!(waited.await, Ok(Ok(_)));
    assert!(is_said, "it never said `{text}`: {}", *talk.borrow());
}
