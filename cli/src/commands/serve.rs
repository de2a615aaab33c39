//! `gleaner serve`: receiver, workers and ticker of one machine.

mod started;

use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use domain::keyring::{Keyring, NoKeys};
use domain::signature::verdict::Unconfigured;
use embedded::{LockError, ServerLock};
use settings::Given;
use telemetry::Metrics;
use tokio::net::TcpListener;

use self::started::Started;
use super::settings_flags::SettingsFlags;
use crate::backend::{Embedded, Secrets, SetKey, secret_places};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;
use crate::serve::{
    Complaints, Ended, Listeners, ReceiverBounds, Server, ServerSettings, Waiting, watch_account,
};

/// What to do without a secret.
const NO_SECRET: &str = "register webhooks with `gleaner webhooks create --url URL`, or set \
                         GLEANER_WEBHOOK_SECRET, or start with --without-webhooks to find jobs by \
                         polling alone";

/// Receive webhooks, and fetch and store the results of finished jobs, until interrupted.
///
/// Receives signed deliveries over plain HTTP (put a proxy with TLS before it), polls for jobs whose
/// delivery was lost, and stores each result once. GET /healthz answers 200. With an address for
/// metrics set, GET /metrics answers there, as Prometheus reads it. One server per data folder; other
/// verbs may run beside it. SIGTERM and Ctrl-C let open work finish for at most 10 seconds; what is
/// left, also after a crash, is taken up by the next start.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on; port 0 takes a free one [default: 127.0.0.1:8787].
    #[arg(long, value_name = "ADDRESS", conflicts_with = "without_webhooks")]
    listen: Option<String>,
    /// Receive nothing, and find finished jobs by the platform's job lists alone, as with the
    /// setting `webhooks = "off"`.
    #[arg(long)]
    without_webhooks: bool,
}

impl Serve {
    pub(crate) async fn run(self, output: Output, flags: &SettingsFlags) -> Result<Exit, CliError> {
        let listen = self.listen.iter().map(|address| Given {
            flag: "--listen",
            name: "listen".to_owned(),
            value: address.clone(),
        });
        let without_webhooks = self.without_webhooks.then(|| Given {
            flag: "--without-webhooks",
            name: "webhooks".to_owned(),
            value: "off".to_owned(),
        });
        let settings = flags.load_with(listen.chain(without_webhooks).collect())?;
        let backend = Embedded::open(&settings)?;
        let _lock = ServerLock::acquire(&settings.ledger_file()).map_err(locked)?;
        let (server, listeners) = assemble(backend).await?;
        let listening = url(listeners.receiver.as_ref(), &settings.webhook_path)?;
        let metrics = url(listeners.metrics.as_ref(), "/metrics")?;
        // Before it is said to be up, so that a signal sent from then on is a clean stop.
        let interrupted = super::Interrupt::listen();
        output.print(&Started::of(&settings, listening, metrics))?;
        // The key is asked about beside the work: a platform that is down keeps nobody from
        // receiving.
        let (pipeline, key) = (server.pipeline.clone(), SetKey::of(&settings).place());
        let ended = tokio::select! {
            ended = server.serve(listeners, interrupted.wait()) => ended,
            never = watch_account(&pipeline, &key) => match never {},
        };
        match ended {
            Ended::Asked => Ok(Exit::Ok),
            Ended::Broken => Err(CliError::new(Exit::Bug, "a part of the server broke down")
                .hint("nothing received is lost: start it again, and please report this")),
        }
    }
}

/// The server, and where it listens.
async fn assemble(backend: Embedded) -> Result<(Server, Listeners), CliError> {
    let Embedded { settings, pipeline, webhooks, store } = backend;
    let secrets = Secrets::of(&settings, Arc::clone(&pipeline.clock));
    let keyring = Keyring::new(Arc::new(secrets), settings.scheme.clone(), &settings.limits);
    let receiver = if settings.upkeep.replay.is_none() {
        None
    } else {
        keyring.current(&*pipeline.clock).await.map_err(no_keys)?;
        let hint = "name another address with --listen; port 0 takes a free one";
        Some(bind(settings.listen, hint).await?)
    };
    let metrics = match settings.metrics_listen {
        Some(address) => Some(bind(address, "set metrics_listen to another address").await?),
        None => None,
    };
    let listeners = Listeners { receiver, metrics };
    let receiver = settings.receiver;
    let server = Server {
        pipeline,
        webhooks,
        source: Arc::new(store) as Arc<dyn Waiting>,
        keyring: Arc::new(keyring),
        format: settings.envelope.clone(),
        settings: ServerSettings {
            path: settings.webhook_path.clone(),
            workers: settings.workers,
            hold: settings.task_hold,
            tick: settings.tick,
            upkeep: settings.upkeep.clone(),
            bounds: ReceiverBounds {
                connections: receiver.connections,
                body_bytes: receiver.body_bytes,
                bodies_bytes: receiver.bodies_bytes,
                head_timeout: receiver.head_timeout,
                body_timeout: receiver.body_timeout,
            },
        },
        metrics: Arc::new(Metrics::for_scrapes()),
        complaints: Complaints::about(secret_places(&settings)),
    };
    Ok((server, listeners))
}

/// Where a listener is reached, if there is one.
fn url(listener: Option<&TcpListener>, path: &str) -> Result<Option<String>, CliError> {
    let Some(listener) = listener else { return Ok(None) };
    let address = listener
        .local_addr()
        .map_err(|error| CliError::new(Exit::System, "cannot listen").because(error))?;
    Ok(Some(format!("http://{address}{path}")))
}

async fn bind(address: SocketAddr, hint: &str) -> Result<TcpListener, CliError> {
    TcpListener::bind(address).await.map_err(|error| {
        CliError::new(Exit::System, format!("cannot listen on {address}")).because(error).hint(hint)
    })
}

fn locked(error: LockError) -> CliError {
    match error {
        LockError::Held { .. } => {
            CliError::new(Exit::TryAgain, "a server is running already").because(error)
        }
        LockError::Io { .. } => {
            CliError::new(Exit::System, "cannot lock the data folder").because(error)
        }
    }
}

fn no_keys(error: NoKeys) -> CliError {
    match error {
        NoKeys::Unconfigured(Unconfigured::NoSecret) => {
            CliError::new(Exit::Configuration, "there is no signing secret").hint(NO_SECRET)
        }
        NoKeys::Unconfigured(reason) => {
            CliError::new(Exit::Configuration, "no signing secret can be used").because(reason)
        }
        // The cause says what to do.
        NoKeys::Load(error) => {
            CliError::new(Exit::Configuration, "the signing secrets cannot be read").because(error)
        }
        error @ NoKeys::Cold => {
            CliError::new(Exit::TryAgain, "the signing secrets cannot be read").because(error)
        }
    }
}
