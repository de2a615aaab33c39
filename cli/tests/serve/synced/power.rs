//! A disk that keeps nothing but what was synced, as a power cut may leave it.

use super::trace::Call;

/// Line on which the last sync began that had made a file durable before a line.
pub(crate) fn last_sync(calls: &[Call], file: &str, line: usize) -> Option<usize> {
    let is_done = |call: &&Call| call.syncs(file) && call.ended < line;
    calls.iter().filter(is_done).map(|call| call.began).max()
}

/// What a file holds when nothing is left but what a sync made durable, the last of them having
/// begun on a line. What was written before a sync that failed is lost, also if a later one
/// succeeds: that is how Linux reports trouble with a disk, once.
pub(crate) fn content(calls: &[Call], file: &str, last: usize) -> Vec<u8> {
    let mut content = Vec::new();
    let mut pending: Vec<&Call> = Vec::new();
    for call in calls.iter().filter(|call| call.file() == file && call.began <= last) {
        if call.is(&["ftruncate", "pwrite64"]) {
            pending.push(call);
        } else if ["fsync", "fdatasync"].contains(&call.name.as_str()) {
            let (over, open): (Vec<_>, Vec<_>) =
                pending.into_iter().partition(|write| write.ended < call.began);
            pending = open;
            for write in over.into_iter().filter(|_| call.syncs(file)) {
                apply(write, &mut content);
            }
        } else {
            assert!(!call.writes(file), "{} does not say where it writes", call.name);
        }
    }
    content
}

fn apply(write: &Call, content: &mut Vec<u8>) {
    let number = write.last_number.expect("an offset or a length");
    let number = usize::try_from(number).unwrap();
    if write.is(&["ftruncate"]) {
        content.resize(number, 0);
    } else {
        let data = write.bytes();
        content.resize(content.len().max(number + data.len()), 0);
        content[number..number + data.len()].copy_from_slice(&data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synced::trace::parse;

    #[test]
    fn only_what_was_synced_is_left() {
        let trace = "\
1 pwrite64(3</f>, \"abcd\", 4, 0) = 4
1 fsync(3</f>) = 0
1 pwrite64(3</f>, \"X\", 1, 1) = 1
1 pwrite64(3</f>, \"Y\", 1, 5) = 1
1 fsync(3</f>) = -1 EIO (Input/output error)
1 pwrite64(3</f>, \"Z\", 1, 2) = 1
1 fsync(4</g>) = 0
2 pwrite64(3</f>, \"W\", 1, 3 <unfinished ...>
1 fdatasync(3</f> <unfinished ...>
2 <... pwrite64 resumed>) = 1
1 <... fdatasync resumed>) = 0
1 ftruncate(3</f>, 2) = 0";
        let calls = parse(trace);
        assert_eq!(last_sync(&calls, "/f", 1), None, "it has not ended");
        assert_eq!(last_sync(&calls, "/f", 10), Some(1));
        assert_eq!(last_sync(&calls, "/f", 12), Some(8));
        assert_eq!(content(&calls, "/f", 1), b"abcd");
        assert_eq!(content(&calls, "/f", 8), b"abZd");
        let closed = parse(&format!("{trace}\n1 fsync(3</f>) = 0"));
        assert_eq!(content(&closed, "/f", 12), b"ab");
    }
}
