//! The least that a receiver in Rust can do: read the body, check the HMAC, answer.

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use hmac::Mac as _;
use serde_json::json;
use tokio::net::TcpListener;

use super::deliveries::{HmacSha256, SIGNATURE_HEADER, keyed};

/// Serves until it is killed.
pub(crate) fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/webhook", listener.local_addr()?);
        println!("{}", json!({ "listening": url }));
        let router = Router::new().route("/webhook", post(deliver)).with_state(keyed()?);
        let listener = listener.tap_io(|stream| {
            // Without it an answer may wait; nothing is wrong with it then.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router).await?;
        Ok(())
    })
}

async fn deliver(State(mut mac): State<HmacSha256>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let claimed = headers.get(SIGNATURE_HEADER).map(HeaderValue::as_bytes);
    let claimed = claimed.and_then(|value| value.strip_prefix(b"sha256="));
    let Some(digest) = claimed.and_then(|digits| hex::decode(digits).ok()) else {
        return StatusCode::UNAUTHORIZED;
    };
    mac.update(&body);
    if mac.verify_slice(&digest).is_err() {
        return StatusCode::UNAUTHORIZED;
    }
    StatusCode::ACCEPTED
}
