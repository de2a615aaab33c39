//! The data folder: who may read it, whether it can be written, and how much room is left.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use settings::Settings;

use super::finding::Finding;

/// The names of the checks.
pub(super) const FOLDER: &str = "folder";
pub(super) const DISK: &str = "disk";

/// Free bytes below which a delivery or a result may not fit any more.
const FREE_BYTES_MIN: u64 = 128 * 1_024 * 1_024; // 128 MiB
/// Free bytes below which somebody should make room.
const FREE_BYTES_LOW: u64 = 2 * 1_024 * 1_024 * 1_024; // 2 GiB
/// Bytes that are written to see whether that can be done.
const PROBE: &[u8] = b"gleaner doctor";

/// Looks at the folder, and writes and removes a small file in it.
pub(super) fn judge(settings: &Settings) -> Vec<Finding> {
    let dir = &settings.data_dir;
    let shown = dir.display();
    if !dir.exists() {
        let above = dir.ancestors().skip(1).find(|above| above.exists());
        let above = above.filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or_else(|| Path::new("."));
        return vec![match probe(above) {
            Ok(()) => Finding::warning(
                FOLDER,
                format!("there is no data folder `{shown}` yet"),
                "`submit`, `serve` and `webhooks create` make it; if you have one elsewhere, name \
                 it with --data-dir",
            ),
            Err(error) => Finding::failed(
                FOLDER,
                format!("there is no data folder `{shown}`, and none can be made there: {error}"),
                "name another one with --data-dir or GLEANER_DATA_DIR",
            ),
        }];
    }
    let mut findings = vec![writable(dir)];
    findings.extend(open_to_others(dir));
    if let Some(concern) = embedded::filesystem_concern(&settings.ledger_file()) {
        findings.push(Finding::warning(
            FOLDER,
            concern.to_string(),
            "stop the server, and move the whole folder to a local disk",
        ));
    }
    findings.push(room(dir));
    findings
}

fn writable(dir: &Path) -> Finding {
    let shown = dir.display();
    match probe(dir) {
        Ok(()) => Finding::ok(FOLDER, format!("`{shown}` can be written")),
        Err(error) => Finding::failed(
            FOLDER,
            format!("`{shown}` cannot be written: {error}"),
            "see who owns the folder, and whether its disk is full or mounted for reading alone",
        ),
    }
}

/// Writes a file and removes it, whatever happens.
fn probe(dir: &Path) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".doctor-").tempfile_in(dir)?;
    file.write_all(PROBE)?;
    file.as_file().sync_all()?;
    file.close()
}

#[cfg(unix)]
fn open_to_others(dir: &Path) -> Option<Finding> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(dir).ok()?.permissions().mode();
    (mode & 0o077 != 0).then(|| {
        Finding::warning(
            FOLDER,
            format!("`{}` is open to other users of this machine", dir.display()),
            format!("run `chmod 700 {}`", dir.display()),
        )
    })
}

#[cfg(not(unix))]
fn open_to_others(_dir: &Path) -> Option<Finding> {
    None
}

fn room(dir: &Path) -> Finding {
    match free_bytes(dir) {
        Err(error) => Finding::skipped(DISK, format!("the free room is not known: {error}")),
        Ok(free) => judge_room(free),
    }
}

fn judge_room(free: u64) -> Finding {
    let found = format!("{} MiB are free for ledger and results", free / (1_024 * 1_024));
    let advice = "make room: on a full disk deliveries are answered 503 and nothing is stored; \
                  nothing is lost meanwhile";
    if free < FREE_BYTES_MIN {
        Finding::failed(DISK, found, advice)
    } else if free < FREE_BYTES_LOW {
        Finding::warning(DISK, found, advice)
    } else {
        Finding::ok(DISK, found)
    }
}

#[cfg(unix)]
fn free_bytes(dir: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(dir)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_dir: &Path) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Where the header of an SQLite file has its version and its mark, four bytes each, the highest
/// first. Source: SQLite, "Database File Format".
const VERSION_AT: usize = 60;
const MARK_AT: usize = 68;
const HEADER_BYTES: usize = 100;

/// The schema version of a ledger that this program would bring up to date if it opened it.
pub(super) fn older_version(ledger: &Path) -> Option<i32> {
    let mut header = [0; HEADER_BYTES];
    File::open(ledger).ok()?.read_exact(&mut header).ok()?;
    let number = |at: usize| {
        let bytes = header.get(at..at.saturating_add(4))?;
        Some(i32::from_be_bytes(bytes.try_into().ok()?))
    };
    // The newest header may still be beside the file; then the one in it has no mark yet.
    let is_ours = number(MARK_AT)? == embedded::APPLICATION_ID;
    number(VERSION_AT).filter(|version| is_ours && *version < embedded::SCHEMA_VERSION)
}

#[cfg(test)]
mod tests;
