//! One file per verb.

use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) mod audit;
pub(crate) mod completions;
pub(crate) mod dead;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod extract;
pub(crate) mod fetch_flags;
pub(crate) mod jobs;
pub(crate) mod poll;
pub(crate) mod reconcile;
pub(crate) mod replay;
pub(crate) mod results;
pub(crate) mod rotate;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod settings_flags;
pub(crate) mod simulate;
pub(crate) mod submit;
pub(crate) mod sweep;
pub(crate) mod upkeep;
pub(crate) mod webhooks;

/// Resolves when the process is asked to end: by Ctrl-C or by SIGTERM.
pub(crate) async fn interrupted() {
    Interrupt::listen().wait().await;
}

/// The signals that ask the process to end, noticed from [`Interrupt::listen`] on.
pub(crate) struct Interrupt {
    signals: Vec<Signal>,
}

impl Interrupt {
    /// Begins to notice the signals; to be called within the runtime.
    pub(crate) fn listen() -> Self {
        let listen = |kind: SignalKind| {
            signal(kind)
                .inspect_err(|error| tracing::warn!(%error, "a signal will not be noticed"))
                .ok()
        };
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
        Self { signals: kinds.into_iter().filter_map(listen).collect() }
    }

    /// Resolves with the first signal.
    pub(crate) async fn wait(mut self) {
        let signals = self.signals.iter_mut().map(|signal| Box::pin(signal.recv()));
        let signals: Vec<_> = signals.collect();
        if signals.is_empty() {
            return std::future::pending().await;
        }
        drop(futures_util::future::select_all(signals).await);
    }
}
