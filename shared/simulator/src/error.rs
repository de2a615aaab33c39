//! Why a simulator cannot start.

use std::path::PathBuf;

use thiserror::Error;

/// Why a simulator cannot start or run.
#[derive(Debug, Error)]
pub enum SimulatorError {
    /// A corpus file or folder cannot be read.
    #[error("cannot read the corpus at `{}`; give a folder of UTF-8 .html and .md files", .path.display())]
    Corpus {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The corpus is larger than the simulator keeps in memory.
    #[error("the corpus grows too large with `{}`; use files of at most 16 MiB, 256 MiB together", .path.display())]
    CorpusTooLarge {
        /// The file that went over the bound.
        path: PathBuf,
    },
    /// The corpus folder holds nothing to serve.
    #[error("no .html or .md files in the corpus folder `{}`", .path.display())]
    CorpusEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// A setting has a value that cannot be used.
    #[error("setting `{name}` must be {expected}")]
    Setting {
        /// Name of the setting, with dots.
        name: &'static str,
        /// What is allowed.
        expected: &'static str,
    },
    /// The listening socket does not work.
    #[error("cannot use the listening socket")]
    Listen(#[source] std::io::Error),
    /// The webhook sender's HTTP client cannot be set up.
    #[error("cannot set up the webhook sender")]
    Sender(#[source] reqwest::Error),
}
