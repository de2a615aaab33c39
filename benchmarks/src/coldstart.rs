//! How a function starts on AWS Lambda, and what it costs once it is warm.
//!
//! This program plays Lambda's runtime API and the services of AWS, on one thread and without a
//! pause, to one function's process at a time: the receiver, a function that does nothing, and a
//! receiver in Python. Each start is another process; each delivery is another job, and a start
//! counts only if the services got exactly one row and one message for each delivery that was
//! accepted, and none for the forged one.

mod aws;
mod events;
mod functions;
mod proof;
mod report;
mod start;
mod zip;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use self::aws::{Aws, Transport};
use self::events::Events;
use self::functions::{Function, Programs};
use self::start::Start;

/// Options of `bench coldstart`.
#[derive(Args, Debug)]
pub(crate) struct Coldstart {
    /// Folder of the functions' programs [default: this program's]
    #[arg(long, value_name = "DIR")]
    functions: Option<PathBuf>,
    /// Interpreter that has what benchmarks/python/function-requirements.txt names
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Starts of each function over each transport
    #[arg(long, default_value_t = 40)]
    starts: usize,
    /// Deliveries to each process once it is warm
    #[arg(long, default_value_t = 100)]
    warm: usize,
}

/// All starts of a function over a transport.
type Measured = BTreeMap<(Transport, Function), Vec<Start>>;

impl Coldstart {
    /// Measures, and prints table and verdicts. Writes into the folder.
    pub(crate) fn run(&self, folder: &Path) -> Result<()> {
        // One thread: the function has the other core.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.spawn(stay_awake());
        runtime.block_on(self.measure(folder))
    }

    async fn measure(&self, folder: &Path) -> Result<()> {
        ensure!(self.starts > 0 && self.warm > 0, "one start and one warm delivery are needed");
        let beside =
            std::env::current_exe()?.parent().context("a program has a folder")?.to_owned();
        let programs = Programs {
            rust: self.functions.clone().unwrap_or(beside),
            python: self.python.clone(),
            folder: folder.to_owned(),
        };
        programs.prepare()?;
        let functions: Vec<_> = Function::ALL
            .into_iter()
            .filter(|function| *function != Function::Python || self.python.is_some())
            .collect();
        let mut services = Vec::new();
        for transport in Transport::ALL {
            services.push((transport, Aws::start(transport, folder).await?));
        }
        let mut events = Events::new()?;
        let mut measured = Measured::new();
        // The first round fills the system's caches, and Python's of its modules.
        for round in 0..=self.starts {
            say(&format!("round {round} of {}", self.starts));
            for place in 0..functions.len() {
                // Another one begins in each round, so that a busy minute hits all alike.
                let next = functions.iter().cycle().nth(round + place);
                let function = *next.context("no function is to be measured")?;
                for (transport, aws) in &services {
                    let command = programs.command(function, aws)?;
                    let start = Start::measure(command, function, aws, &mut events, self.warm);
                    let start = start.await.with_context(|| programs.told(function))?;
                    if round > 0 {
                        measured.entry((*transport, function)).or_default().push(start);
                    }
                }
            }
        }
        let mut sizes = BTreeMap::new();
        for function in &functions {
            sizes.insert(*function, programs.zip_bytes(*function)?);
        }
        report::print(&measured, &sizes)
    }
}

/// Keeps the thread from sleeping between requests: to be woken takes a virtual machine up to 50 µs
/// each time, which would be the most of a warm delivery.
async fn stay_awake() {
    loop {
        // Whoever else needs the core gets it.
        std::thread::yield_now();
        tokio::task::yield_now().await;
    }
}

/// Tells whoever waits what is being measured.
#[expect(clippy::print_stderr, reason = "talk, beside the figures on standard output")]
fn say(text: &str) {
    eprintln!("{text}");
}
