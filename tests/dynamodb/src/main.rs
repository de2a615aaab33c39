//! A DynamoDB on loopback for tests: `dynoxide`, with all tables in memory.
//!
//! Prints the port that it listens on as one line, and ends when its standard input does: a test
//! that dies takes its server with it.

use std::error::Error;
use std::io::{Write as _, copy, sink, stdin, stdout};

use dynoxide::Database;
use dynoxide::server::serve_on;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    let mut out = stdout();
    writeln!(out, "{port}")?;
    out.flush()?;
    let (alive, parent_is_gone) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let _ = copy(&mut stdin(), &mut sink());
        drop(alive);
    });
    tokio::select! {
        () = serve_on(listener, Database::memory()?) => Ok(()),
        _ = parent_is_gone => Ok(()),
    }
}
