//! The server that the tests of this process share.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// Names a server to be used instead; it must be on loopback.
const VARIABLE: &str = "GLEANER_TEST_DYNAMODB";

/// The emulator. It ends with this process, whose end closes its standard input.
struct Server {
    endpoint: String,
    _process: Option<Child>,
}

/// The URL of a server whose tables are ours.
pub(crate) fn endpoint() -> &'static str {
    static SERVER: OnceLock<Server> = OnceLock::new();
    &SERVER.get_or_init(begin).endpoint
}

#[expect(clippy::disallowed_methods, reason = "which server judges is the environment's to say")]
fn begin() -> Server {
    let Ok(endpoint) = std::env::var(VARIABLE) else { return start() };
    let host = endpoint.strip_prefix("http://").unwrap_or_default();
    let is_loopback = ["127.0.0.1:", "localhost:"].iter().any(|name| host.starts_with(name));
    assert!(is_loopback, "{VARIABLE} must name a server on loopback: the tests make tables there");
    Server { endpoint, _process: None }
}

/// Builds and starts the emulator in `tests/dynamodb`.
fn start() -> Server {
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/dynamodb/Cargo.toml");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../dynamodb-server");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--manifest-path", package, "--target-dir"])
        .arg(&target)
        .status();
    assert!(
        built.is_ok_and(|status| status.success()),
        "the tests' DynamoDB does not build: see `cargo build --manifest-path {package}`, or name \
         a running one in {VARIABLE}"
    );
    let mut process = Command::new(target.join("debug/dynamodb-server"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let endpoint = format!("http://127.0.0.1:{}", port.trim());
    Server { endpoint, _process: Some(process) }
}
