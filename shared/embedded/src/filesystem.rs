//! Whether a ledger lies where `SQLite` may lose it.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// File systems whose locks or shared memory are known to fail `SQLite`: network file systems, and
/// folders that a virtual machine shares with its host.
const SHARED: [&str; 17] = [
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "drvfs",
    "gfs2",
    "glusterfs",
    "lustre",
    "nfs",
    "nfs4",
    "prl_fs",
    "smb3",
    "smbfs",
    "vboxsf",
    "virtiofs",
];

/// Prefix of file systems in user space, most of which are network or shared folders.
const USER_SPACE: &str = "fuse.";

/// The system's list of mounts.
const MOUNTS: &str = "/proc/self/mountinfo";

/// Longest list of mounts that is read, in bytes: a host of ten thousand containers has 2 MB.
const MOUNTS_BYTES_MAX: u64 = 4 * 1_024 * 1_024;

/// A reason not to keep a ledger where it is. Its text is a warning for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concern {
    /// The directory is on a network or shared file system.
    Shared {
        /// The ledger's file.
        path: PathBuf,
        /// The file system's name.
        filesystem: String,
    },
    /// The file is mounted alone, without its companions.
    FileMount {
        /// The ledger's file.
        path: PathBuf,
    },
}

impl fmt::Display for Concern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared { path, filesystem } => write!(
                formatter,
                "{} is on a {filesystem} file system, where SQLite files are known to be damaged; \
                 keep it on a local disk",
                path.display()
            ),
            Self::FileMount { path } => write!(
                formatter,
                "{} is mounted alone, so that its `-wal` companion is lost with the container; \
                 mount its directory",
                path.display()
            ),
        }
    }
}

/// Looks where a ledger lies; `None` if nothing speaks against it or nothing can be known.
pub fn filesystem_concern(ledger: &Path) -> Option<Concern> {
    let mut mounts = String::new();
    File::open(MOUNTS).ok()?.take(MOUNTS_BYTES_MAX).read_to_string(&mut mounts).ok()?;
    let directory = match ledger.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let whole = directory.canonicalize().ok()?.join(ledger.file_name()?);
    judge(&mounts, &whole)
}

/// Decides by the innermost mount that holds the file; of two at one place the later one counts.
fn judge(mounts: &str, ledger: &Path) -> Option<Concern> {
    let (place, filesystem) = mounts
        .lines()
        .filter_map(parse_mount)
        .filter(|(place, _)| ledger.starts_with(place))
        .max_by_key(|(place, _)| place.components().count())?;
    if place == ledger {
        return Some(Concern::FileMount { path: ledger.to_owned() });
    }
    let is_shared = SHARED.contains(&filesystem) || filesystem.starts_with(USER_SPACE);
    is_shared
        .then(|| Concern::Shared { path: ledger.to_owned(), filesystem: filesystem.to_owned() })
}

/// Where a line of the list mounts, and what. Fields are those of proc(5).
fn parse_mount(line: &str) -> Option<(PathBuf, &str)> {
    let (left, right) = line.split_once(" - ")?;
    let place = left.split(' ').nth(4)?;
    // The list writes a space as \040; other escapes are in no sane path.
    Some((PathBuf::from(place.replace("\\040", " ")), right.split(' ').next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:5 / /data rw - virtiofs share rw
24 22 0:6 / /data/local rw master:1 - ext4 /dev/vdb rw
25 22 0:7 / /net\\040work rw - nfs4 host:/export rw
26 22 254:0 /g.db /app/g.db rw - ext4 /dev/vda rw
27 22 0:8 / /home/me rw - fuse.sshfs host: rw
28 22 0:8 / /over rw - nfs4 host: rw
29 22 0:9 / /over rw - tmpfs tmpfs rw
broken line
";

    /// SQ-05: network and shared folders are told apart from local disks, a file mounted alone
    /// from a directory.
    #[test]
    fn the_innermost_mount_decides() {
        let shared = |path: &str, filesystem: &str| {
            Some(Concern::Shared { path: path.into(), filesystem: filesystem.to_owned() })
        };
        for (path, wanted) in [
            ("/var/lib/g.db", None),
            ("/data/g.db", shared("/data/g.db", "virtiofs")),
            ("/data/local/g.db", None),
            ("/database/g.db", None),
            ("/net work/g.db", shared("/net work/g.db", "nfs4")),
            ("/app/g.db", Some(Concern::FileMount { path: "/app/g.db".into() })),
            ("/app/other.db", None),
            ("/home/me/g.db", shared("/home/me/g.db", "fuse.sshfs")),
            ("/over/g.db", None),
        ] {
            assert_eq!(judge(MOUNTS, Path::new(path)), wanted, "{path}");
        }
        assert_eq!(judge("", Path::new("/g.db")), None);
    }

    #[test]
    fn warnings_say_what_to_do() {
        let shared = judge(MOUNTS, Path::new("/data/g.db")).unwrap().to_string();
        assert!(shared.contains("keep it on a local disk"), "{shared}");
        let alone = judge(MOUNTS, Path::new("/app/g.db")).unwrap().to_string();
        assert!(alone.contains("mount its directory"), "{alone}");
    }

    #[test]
    fn a_ledger_in_no_directory_raises_no_concern() {
        assert_eq!(filesystem_concern(Path::new("/nonexistent/g.db")), None);
    }
}
