//! `growth`: whether anything gets slower as the ledger fills up.

mod commands;
mod file;
mod meter;
mod ports;
mod steps;
mod subject;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Args;

use self::commands::{Start, serve};
use self::meter::Figures;
use self::ports::SetClock;
use self::steps::Step;
use self::subject::{Subject, ledger_file};
use crate::figures::median;
use crate::table::markdown;

/// Starts of a server on each file, of which the median counts.
const STARTS: usize = 5;

/// How growth is measured.
#[derive(Debug, Args)]
pub(crate) struct Growth {
    /// Rows in the files.
    #[arg(long, value_delimiter = ',', default_value = "10000,100000,1000000")]
    sizes: Vec<usize>,
    /// Rounds, in each of which every step is measured on every file.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Folder in which the files are kept and found again; else they are made anew and removed.
    #[arg(long)]
    folder: Option<PathBuf>,
}

impl Growth {
    pub(crate) fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(self.measure())
    }

    async fn measure(self) -> Result<()> {
        let made = tempfile::tempdir()?;
        let root = self.folder.clone().unwrap_or_else(|| made.path().to_owned());
        let mut subjects = Vec::new();
        for size in &self.sizes {
            let folder = root.join(size.to_string());
            if !ledger_file(&folder).exists() {
                fill(&folder, *size).await?;
            }
            subjects.push(Arc::new(Subject::open(&folder, *size).await?));
        }
        let mut figures: BTreeMap<(Step, usize), Figures> = BTreeMap::new();
        for round in 0..self.rounds {
            for step in Step::ALL {
                for turn in 0..subjects.len() {
                    let at = (round + turn) % subjects.len();
                    let subject = subjects.get(at).context("there are no files")?;
                    let block = step.run(subject).await.with_context(|| step.name())?;
                    figures.entry((step, at)).or_default().add(block);
                }
            }
        }
        println!("{}", costs(&mut figures, &subjects));
        let files = self.files(&root, subjects).await?;
        println!("{files}");
        Ok(())
    }

    /// Size, start and start after a crash.
    async fn files(&self, root: &Path, subjects: Vec<Arc<Subject>>) -> Result<String> {
        let mut rows: [Vec<String>; 5] = [
            "bytes of the file per row",
            "start of a server, ms",
            "its peak memory, MiB",
            "start after a crash, ms",
            "bytes of the log then, MiB",
        ]
        .map(|name| vec![name.to_owned()]);
        for subject in subjects {
            let crashed = root.join(format!("{}-crashed", subject.size));
            copy(&subject.folder, &crashed)?;
            let log = ledger_file(&crashed).with_extension("db-wal");
            let log = std::fs::metadata(log).map_or(0, |log| log.len()) / (1024 * 1024);
            let after_crash = serve(&crashed).await?;
            std::fs::remove_dir_all(&crashed)?;
            let (folder, size) = (subject.folder.clone(), subject.size);
            let subject = Arc::into_inner(subject).context("a step still runs")?;
            drop(subject);
            let mut starts = Vec::new();
            for _ in 0..STARTS {
                starts.push(serve(&folder).await?);
            }
            let file = std::fs::metadata(ledger_file(&folder))?.len() / u64::try_from(size)?;
            let of = |value: fn(&Start) -> f64| {
                let mut values: Vec<f64> = starts.iter().map(value).collect();
                format!("{:.1}", median(&mut values).unwrap_or_default())
            };
            let cells = [
                file.to_string(),
                of(|start| start.milliseconds),
                of(|start| start.peak_mib),
                format!("{:.1}", after_crash.milliseconds),
                log.to_string(),
            ];
            for (row, cell) in rows.iter_mut().zip(cells) {
                row.push(cell);
            }
        }
        let sizes = self.sizes.iter().map(|size| grouped(*size));
        let heading: Vec<String> = std::iter::once("the file".to_owned()).chain(sizes).collect();
        let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
        Ok(markdown(&heading, &rows))
    }
}

/// Makes a file and says how long it took.
async fn fill(folder: &Path, size: usize) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let clock = Arc::new(SetClock::default());
    let store = subject::open(folder, Arc::clone(&clock))?;
    let (waited, ()) = meter::wait(file::fill(&store, &clock, size)).await?;
    println!("made a ledger of {} rows in {:.1} s", grouped(size), waited / 1e6);
    Ok(())
}

/// Copies a data folder as a crash would leave it: the file with its log.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for name in ["ledger.db", "ledger.db-wal"] {
        if from.join(name).exists() {
            std::fs::copy(from.join(name), to.join(name))?;
        }
    }
    Ok(())
}

/// One row per step: processor time and time waited, on each file, and how they grow.
fn costs(figures: &mut BTreeMap<(Step, usize), Figures>, subjects: &[Arc<Subject>]) -> String {
    let sizes: Vec<String> = subjects.iter().map(|subject| grouped(subject.size)).collect();
    let mut heading = vec!["step".to_owned()];
    heading.extend(sizes.iter().map(|size| format!("CPU µs, {size}")));
    heading.push("growth".to_owned());
    heading.extend(sizes.iter().map(|size| format!("wait µs (p99), {size}")));
    heading.push("growth".to_owned());
    let mut rows = Vec::new();
    for step in Step::ALL {
        let mut of = |value: fn(&mut Figures) -> f64| -> Vec<f64> {
            let files = 0..subjects.len();
            files.map(|at| value(figures.entry((step, at)).or_default())).collect()
        };
        let (cpu, median, p99) = (of(Figures::cpu), of(Figures::median), of(Figures::p99));
        let mut row = vec![step.name().to_owned()];
        if step.is_command() {
            row.extend(std::iter::repeat_n("-".to_owned(), cpu.len() + 1));
        } else {
            row.extend(cpu.iter().map(|cpu| rounded(*cpu)));
            row.push(growth(&cpu));
        }
        let waits = median.iter().zip(&p99);
        row.extend(waits.map(|(median, p99)| format!("{} ({})", rounded(*median), rounded(*p99))));
        row.push(growth(&median));
        rows.push(row);
    }
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    markdown(&heading, &rows)
}

/// How many times the last is the first.
fn growth(values: &[f64]) -> String {
    match (values.first(), values.last()) {
        (Some(first), Some(last)) if *first > 0.0 => format!("{:.2}", last / first),
        _ => "-".to_owned(),
    }
}

/// Three digits that count.
fn rounded(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// A number with its thousands apart.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(grouped(1_000_000), "1,000,000");
        assert_eq!(grouped(999), "999");
        assert_eq!((rounded(4.44).as_str(), rounded(4_440.4).as_str()), ("4.4", "4440"));
        assert_eq!(growth(&[2.0, 9.0, 3.0]), "1.50");
    }
}
