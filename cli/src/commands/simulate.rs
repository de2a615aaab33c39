//! `gleaner simulate`: the platform's simulator over HTTP.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use simulator::{Config, Faults, SystemClock};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::commands::demo::parse_speed;
use crate::demo::Weather;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;

/// Largest settings file, in bytes.
const CONFIG_BYTES_MAX: u64 = 1_024 * 1_024;

/// Run the platform's simulator until it is interrupted.
#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:8700", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Settings in TOML or, when the name ends in `.json`, in JSON; flags go before them.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Source of all randomness.
    #[arg(long)]
    seed: Option<u64>,
    /// Divides every duration of the platform.
    #[arg(long, value_parser = parse_speed)]
    speed: Option<f64>,
    /// What goes wrong.
    #[arg(long, value_enum)]
    faults: Option<Weather>,
    /// Folder with real documents that are served as results, byte for byte.
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// End when standard input is closed, as it is when the parent process ends.
    #[arg(long)]
    end_with_stdin: bool,
}

/// Where the simulator listens.
#[derive(Serialize)]
struct Listening {
    version: u32,
    r#type: &'static str,
    url: String,
    /// The key that opens it, if it is the one that everybody knows.
    #[serde(skip)]
    known_key: Option<String>,
}

impl fmt::Display for Listening {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "listening on {}", self.url)?;
        writeln!(out, "export GLEANER_API_URL={}", self.url)?;
        match &self.known_key {
            Some(key) => write!(out, "export GLEANER_API_KEY={key}"),
            None => write!(out, "export GLEANER_API_KEY=...   # as its settings file says"),
        }
    }
}

impl Simulate {
    pub(crate) async fn run(self, output: Output) -> Result<Exit, CliError> {
        let config = self.settings()?;
        let known_key = Some(Config::default().api_key).filter(|key| *key == config.api_key);
        let listener = TcpListener::bind(self.listen).await.map_err(|error| {
            CliError::new(Exit::System, format!("cannot listen on {}", self.listen))
                .because(error)
                .hint("name another address with --listen; port 0 takes a free one")
        })?;
        let running =
            simulator::start(listener, config, Arc::new(SystemClock)).map_err(|error| {
                CliError::new(Exit::Configuration, "cannot start the simulator").because(error)
            })?;
        let url = running.base_url();
        output.print(&Listening { version: 1, r#type: "simulator", url, known_key })?;
        tokio::select! {
            () = crate::commands::interrupted() => {}
            () = stdin_closed(), if self.end_with_stdin => {}
        }
        running.stop.stop().await;
        Ok(Exit::Ok)
    }

    fn settings(&self) -> Result<Config, CliError> {
        let mut config = match &self.config {
            Some(path) => read_config(path)?,
            None => Config::default(),
        };
        config.seed = self.seed.unwrap_or(config.seed);
        config.speed = self.speed.unwrap_or(config.speed);
        if let Some(weather) = self.faults {
            config.faults = match weather {
                Weather::None => Faults::none(),
                Weather::Gentle => Faults::gentle(),
                Weather::Harsh => Faults::harsh(),
            };
        }
        if let Some(corpus) = &self.corpus {
            config.corpus = Some(corpus.clone());
        }
        Ok(config)
    }
}

fn read_config(path: &PathBuf) -> Result<Config, CliError> {
    let named = |what: &str| format!("{what} the simulator's settings `{}`", path.display());
    let bytes = std::fs::metadata(path).map(|metadata| metadata.len());
    if bytes.is_ok_and(|bytes| bytes > CONFIG_BYTES_MAX) {
        return Err(CliError::new(Exit::Configuration, named("too large:")));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| CliError::new(Exit::Configuration, named("cannot read")).because(error))?;
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    let config = if is_json {
        serde_json::from_str(&text).map_err(|error| (error.line(), error.to_string()))
    } else {
        toml::from_str(&text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let above = text.bytes().take(start).filter(|byte| *byte == b'\n').count();
            (above + 1, error.message().to_owned())
        })
    };
    config.map_err(|(line, message)| {
        CliError::new(Exit::Configuration, named("cannot understand"))
            .because(format!("line {line}: {}", without_value(&message)))
    })
}

/// A parser's complaint without the value that it quotes, since the settings hold a key.
fn without_value(message: &str) -> String {
    match message.rsplit_once(", expected ") {
        Some((found, expected)) if !found.starts_with("unknown field") => {
            format!("expected {expected}")
        }
        _ => message.to_owned(),
    }
}

async fn stdin_closed() {
    let mut input = tokio::io::stdin();
    let mut buffer = [0_u8; 256];
    // Whatever is written there is of no interest.
    while input.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
}
