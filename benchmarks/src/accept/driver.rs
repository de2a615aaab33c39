//! Drives a receiver: keep-alive connections with one request in flight on each.
//!
//! One thread and plain sockets, so that the driver takes as little as it can of the cores that it
//! shares with the receiver; what it takes is the same for all of them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use super::deliveries::{Delivery, Request};

/// Longest time for a run beyond the time it was given; nobody answers that late.
const PATIENCE: Duration = Duration::from_mins(1);
/// Largest answer that is understood, in bytes.
const ANSWER_BYTES_MAX: usize = 16 * 1_024;

/// What is sent, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load<'a> {
    pub(super) address: SocketAddr,
    pub(super) path: &'a str,
    pub(super) connections: usize,
    /// Taken one after the other, each once; the run ends early when they are used up.
    pub(super) deliveries: &'a [Delivery],
    /// Whether the signatures are right.
    pub(super) genuine: bool,
    /// No request begins after this time.
    pub(super) time: Duration,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Driven {
    /// From the first request to the last answer, in seconds.
    pub(super) seconds: f64,
    /// From request to answer, in milliseconds.
    pub(super) latencies: Vec<f64>,
    /// Answers by status.
    pub(super) statuses: BTreeMap<u16, usize>,
}

impl Driven {
    /// Answers a second.
    pub(super) fn rate(&self) -> f64 {
        count(self.latencies.len()) / self.seconds
    }

    /// Answers of 2xx.
    pub(super) fn accepted(&self) -> usize {
        self.statuses.range(200..300).map(|(_, answers)| answers).sum()
    }

    /// An error unless every answer had a status of this class.
    pub(super) fn all(&self, class: u16) -> Result<()> {
        if self.statuses.keys().all(|status| status / 100 == class) && !self.statuses.is_empty() {
            return Ok(());
        }
        bail!("{class}xx was expected, and the answers were {:?}", self.statuses)
    }
}

/// A count in arithmetic.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(super) fn count(count: usize) -> f64 {
    count as f64
}

/// Sends until the time is up and everything is answered.
pub(super) fn drive(load: Load<'_>) -> Result<Driven> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let run = tokio::time::timeout(load.time + PATIENCE, run(load));
        run.await.context("the receiver does not answer any more")?
    })
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}

/// What the connections share.
struct Shared {
    deliveries: Vec<Delivery>,
    next: Cell<usize>,
    genuine: bool,
    end: Instant,
    driven: RefCell<Driven>,
}

async fn run(load: Load<'_>) -> Result<Driven> {
    let mut streams = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        let stream = TcpStream::connect(load.address).await?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    let request = Request::new(load.path)?;
    let deliveries = load.deliveries.to_vec();
    let driven = RefCell::new(Driven {
        latencies: Vec::with_capacity(deliveries.len()),
        ..Driven::default()
    });
    let begun = now();
    let shared = Rc::new(Shared {
        deliveries,
        next: Cell::new(0),
        genuine: load.genuine,
        end: begun + load.time,
        driven,
    });
    let mut running = Vec::with_capacity(load.connections);
    for stream in streams {
        let connection = connection(stream, request.clone(), Rc::clone(&shared));
        running.push(tokio::task::spawn_local(connection));
    }
    for connection in running {
        connection.await??;
    }
    let mut driven = shared.driven.take();
    driven.seconds = begun.elapsed().as_secs_f64();
    Ok(driven)
}

async fn connection(mut stream: TcpStream, mut request: Request, shared: Rc<Shared>) -> Result<()> {
    let mut buffer = vec![0; ANSWER_BYTES_MAX];
    loop {
        let begun = now();
        if begun >= shared.end {
            return Ok(());
        }
        let number = shared.next.replace(shared.next.get() + 1);
        let Some(delivery) = shared.deliveries.get(number) else { return Ok(()) };
        stream.write_all(request.put(delivery, shared.genuine)?).await?;
        let status = answer(&mut stream, &mut buffer).await?;
        let mut driven = shared.driven.borrow_mut();
        driven.latencies.push(begun.elapsed().as_secs_f64() * 1e3);
        *driven.statuses.entry(status).or_default() += 1;
    }
}

/// Reads one answer to its end and returns its status.
async fn answer(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<u16> {
    let mut filled = 0;
    loop {
        let free = buffer.get_mut(filled..).filter(|free| !free.is_empty());
        let read = stream.read(free.context("an answer is too long")?).await?;
        if read == 0 {
            bail!("the receiver closed a connection");
        }
        filled += read;
        let answer = buffer.get(..filled).unwrap_or_default();
        if let Some((status, length)) = parse(answer)? {
            if filled == length {
                return Ok(status);
            }
            anyhow::ensure!(filled < length, "more was answered than asked");
        }
    }
}

/// Status and whole length of an answer whose head has arrived.
fn parse(answer: &[u8]) -> Result<Option<(u16, usize)>> {
    let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(answer.get(..end).unwrap_or_default())?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("no status line")?;
    let length = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(Ok(0), |(_, value)| value.trim().parse::<usize>())?;
    Ok(Some((status.parse()?, end + 4 + length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_to_their_end() {
        let head = b"HTTP/1.1 202 Accepted\r\nContent-Length: 3\r\n";
        assert_eq!(parse(head).unwrap(), None);
        let whole = [head.as_slice(), b"\r\nabc"].concat();
        assert_eq!(parse(&whole).unwrap(), Some((202, whole.len())));
        let empty = b"HTTP/1.1 401 Unauthorized\r\n\r\n";
        assert_eq!(parse(empty).unwrap(), Some((401, empty.len())));
        assert!(parse(b"nonsense\r\n\r\n").is_err());
    }
}
