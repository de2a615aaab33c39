//! The functions that are compared.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::aws::Aws;
use super::zip;

/// The function in Python, as it stands in the repository.
const FUNCTION_PY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/function.py");
/// The name of the secret that holds the signing secret.
pub(super) const SECRET_ID: &str = "gleaner/webhook";
/// What every function sees, beside where the services are.
const VARIABLES: [(&str, &str); 9] = [
    ("AWS_REGION", "eu-central-1"),
    ("AWS_DEFAULT_REGION", "eu-central-1"),
    ("AWS_ACCESS_KEY_ID", "ASIAIOSFODNN7EXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("AWS_SESSION_TOKEN", "a-session-token-of-nobody"),
    ("GLEANER_STACK", "gleaner"),
    ("GLEANER_TABLE", "gleaner-table"),
    ("GLEANER_QUEUE_URL", "https://sqs.eu-central-1.amazonaws.com/123456789012/gleaner-tasks"),
    ("GLEANER_WEBHOOK_SECRET_IDS", SECRET_ID),
];

/// One of the functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Function {
    /// `lambda_http`, and a handler that says 202.
    Empty,
    /// functions/receiver.
    Receiver,
    /// benchmarks/python/function.py.
    Python,
}

impl Function {
    pub(super) const ALL: [Self; 3] = [Self::Empty, Self::Receiver, Self::Python];

    /// Its name in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Empty => "an empty function",
            Self::Receiver => "receiver",
            Self::Python => "Python, boto3",
        }
    }

    /// Whether it does what a receiver does.
    pub(super) fn receives(self) -> bool {
        self != Self::Empty
    }
}

/// Where the programs are.
pub(super) struct Programs {
    /// Folder of those in Rust.
    pub(super) rust: PathBuf,
    /// The interpreter.
    pub(super) python: Option<PathBuf>,
    /// A folder to work in.
    pub(super) folder: PathBuf,
}

impl Programs {
    /// Lays the function in Python into the folder, where Python may keep what it compiled.
    pub(super) fn prepare(&self) -> Result<()> {
        std::fs::copy(FUNCTION_PY, self.folder.join("function.py")).context(FUNCTION_PY)?;
        Ok(())
    }

    /// The function's process, which does not know where the runtime API is yet.
    pub(super) fn command(&self, function: Function, aws: &Aws) -> Result<Command> {
        let mut command = match function {
            Function::Empty | Function::Receiver => Command::new(self.program(function)?),
            Function::Python => {
                let mut command = Command::new(self.python.as_ref().context("it needs --python")?);
                command.args(["-m", "awslambdaric", "function.handler"]);
                command
            }
        };
        let log = File::create(self.log(function))?;
        command
            .current_dir(&self.folder)
            .env_clear()
            .env("HOME", &self.folder)
            .env("LAMBDA_TASK_ROOT", &self.folder)
            .envs(VARIABLES)
            .envs(aws.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(command)
    }

    /// The function's name and the end of what it wrote.
    pub(super) fn told(&self, function: Function) -> String {
        let written = std::fs::read_to_string(self.log(function)).unwrap_or_default();
        let lines: Vec<_> = written.lines().rev().take(5).collect();
        let lines: Vec<_> = lines.into_iter().rev().collect();
        format!("{}, which wrote: {}", function.name(), lines.join("\n"))
    }

    /// The size of what is deployed. With the function in Python go the modules that it needs, but
    /// for the runtime's own.
    pub(super) fn zip_bytes(&self, function: Function) -> Result<u64> {
        match function {
            Function::Empty | Function::Receiver => {
                zip::bytes(&[("bootstrap".to_owned(), self.program(function)?)])
            }
            Function::Python => {
                let python = self.python.as_ref().context("it needs --python")?;
                let bin = python.parent().context("an interpreter lies in a folder")?;
                let mut files = zip::modules(&bin.with_file_name("lib"))?;
                files.push(("function.py".to_owned(), FUNCTION_PY.into()));
                zip::bytes(&files)
            }
        }
    }

    fn log(&self, function: Function) -> PathBuf {
        self.folder.join(format!("{function:?}.log"))
    }

    fn program(&self, function: Function) -> Result<PathBuf> {
        let name = if function == Function::Empty { "empty-function" } else { "receiver" };
        let program = self.rust.join(name);
        ensure!(
            program.is_file(),
            "{} does not exist: run `cargo xtask bench coldstart`, which builds it",
            program.display()
        );
        Ok(program)
    }
}
