//! Printing a result.

use domain::content::MANIFEST_FORMAT;
use domain::job::{JobId, Kind};
use serde::Deserialize;

use super::locate::Located;
use crate::backend::Store;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Reader, write};

/// What reading the items of a batch or crawl needs of its manifest.
#[derive(Debug, Deserialize)]
pub(super) struct Manifest {
    format: String,
    job_id: JobId,
    /// The parts, in order.
    pub(super) parts: Vec<Part>,
}

/// One part.
#[derive(Debug, Deserialize)]
pub(super) struct Part {
    /// Key of the object.
    pub(super) key: String,
    sha256: String,
}

/// Prints an extract job's object, or the items of a batch or crawl, one per line.
///
/// # Errors
/// When something is missing or damaged; what was printed before it is whole.
pub(super) async fn show(store: &Store, located: &Located) -> Result<Exit, CliError> {
    if located.kind == Kind::Extract {
        let (_, content) = read(store, &located.key).await?;
        print(content)?;
        return Ok(Exit::Ok);
    }
    for part in manifest(store, located).await?.parts {
        let (sha256, content) = read(store, &part.key).await?;
        if sha256 != part.sha256 {
            return Err(CliError::new(
                Exit::Data,
                format!("the part `{}` is not the one that its manifest names", part.key),
            )
            .hint("restore the file from a backup; its SHA-256 is in the manifest"));
        }
        if print(content)? == Reader::Gone {
            break;
        }
    }
    Ok(Exit::Ok)
}

/// Reads the manifest of a batch or crawl.
///
/// # Errors
/// When it is missing, damaged, or another job's.
pub(super) async fn manifest(store: &Store, located: &Located) -> Result<Manifest, CliError> {
    let (_, content) = read(store, &located.key).await?;
    let unusable = || CliError::new(Exit::Data, format!("`{}` is no manifest", located.key));
    let manifest: Manifest =
        serde_json::from_slice(&content).map_err(|error| unusable().because(error))?;
    if manifest.format != MANIFEST_FORMAT || manifest.job_id != located.job_id {
        return Err(
            unusable().hint("it is another job's, or of a version this program cannot read")
        );
    }
    Ok(manifest)
}

async fn read(store: &Store, key: &str) -> Result<(String, Vec<u8>), CliError> {
    match store.results.read(key).await? {
        Some((object, content)) => Ok((object.sha256, content)),
        None => Err(CliError::new(Exit::Data, format!("the object `{key}` is missing"))
            .hint("it was stored and somebody removed it; restore it from a backup")),
    }
}

fn print(mut content: Vec<u8>) -> Result<Reader, CliError> {
    if content.last().is_some_and(|last| *last != b'\n') {
        content.push(b'\n');
    }
    write(&content)
}
