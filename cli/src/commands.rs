//! One file per verb.

pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod extract;
pub(crate) mod fetch_flags;
pub(crate) mod jobs;
pub(crate) mod poll;
pub(crate) mod results;
pub(crate) mod settings_flags;
pub(crate) mod simulate;
pub(crate) mod submit;

/// Resolves when the process is asked to end: by Ctrl-C or by SIGTERM.
pub(crate) async fn interrupted() {
    let mut terminate =
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(terminate) => terminate,
            Err(error) => {
                tracing::warn!(%error, "SIGTERM will not be noticed");
                drop(tokio::signal::ctrl_c().await);
                return;
            }
        };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
