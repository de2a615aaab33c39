//! What `strace` saw a process do.
//!
//! A thread is stopped while the beginning or the end of its call is written down, so the order of
//! the lines is that of the events: a call that ended on an earlier line than another one began was
//! over before the other one's first instruction.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

/// Calls that are traced; a question mark before those that not every processor's Linux has.
const CALLS: &str = "trace=write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,read,readv,\
                     recvfrom,recvmsg,fsync,fdatasync,ftruncate,?link,linkat,?mkdir,mkdirat";
/// Longest piece of data that is written down, in bytes; pages have 4,096.
const DATA_BYTES_MAX: &str = "65536";

/// One call of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// Line on which it began.
    pub(crate) began: usize,
    /// Line on which it ended.
    pub(crate) ended: usize,
    pub(crate) name: String,
    /// What its file descriptors stand for, in order.
    pub(crate) files: Vec<String>,
    /// Its strings and buffers.
    pub(crate) data: Vec<Vec<u8>>,
    /// Its last number: the offset of a `pwrite64`, the length of an `ftruncate`.
    pub(crate) last_number: Option<u64>,
    /// What it returned; negative when it failed.
    pub(crate) result: i64,
}

impl Call {
    /// What its first descriptor stands for.
    pub(crate) fn file(&self) -> &str {
        self.files.first().map_or("", String::as_str)
    }

    /// Its buffers as one.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.data.concat()
    }

    /// Whether it is one of these and did something.
    pub(crate) fn is(&self, names: &[&str]) -> bool {
        self.result >= 0 && names.contains(&self.name.as_str())
    }

    /// Whether it made a file durable.
    pub(crate) fn syncs(&self, file: &str) -> bool {
        self.is(&["fsync", "fdatasync"]) && self.file() == file
    }

    /// Whether it wrote to a file that is no socket.
    pub(crate) fn writes(&self, file: &str) -> bool {
        self.is(&["write", "writev", "pwrite64", "pwritev", "pwritev2"]) && self.file() == file
    }
}

/// The same command under `strace`, which writes to a file and is told `more`.
///
/// # Panics
/// Where there is no `strace`: without it nothing is shown.
pub(crate) async fn traced(command: &Command, file: &Path, more: &[&str]) -> Command {
    let found = Command::new("strace").arg("--version").output().await;
    assert!(
        found.is_ok_and(|output| output.status.success()),
        "this test needs strace: install it (`apt-get install strace`, `dnf install strace`)"
    );
    let traced = command.as_std();
    let mut strace = Command::new("strace");
    // As a grandchild, so that the process is our own child and can be told to end.
    strace.args(["-D", "-f", "-y", "-q", "--seccomp-bpf", "-s", DATA_BYTES_MAX, "-e", CALLS]);
    strace.args(more);
    strace.arg("-o").arg(file).arg("--").arg(traced.get_program()).args(traced.get_args());
    strace.env_clear();
    for (name, value) in traced.get_envs() {
        strace.env(name, value.unwrap_or_default());
    }
    if let Some(dir) = traced.get_current_dir() {
        strace.current_dir(dir);
    }
    strace.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    strace
}

/// Reads a trace, whose calls come in the order in which they began.
///
/// # Panics
/// On what it does not understand, so that nothing is taken for harmless.
pub(crate) fn parse(trace: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut open: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for (number, line) in trace.lines().enumerate() {
        let (thread, event) = line.split_once(' ').unwrap_or_else(|| panic!("no event: {line}"));
        let event = event.trim_start();
        if event.starts_with("+++") || event.starts_with("---") {
            continue;
        }
        if let Some(start) = event.strip_suffix("<unfinished ...>") {
            let before = open.insert(thread, (number, start));
            assert!(before.is_none(), "one call at a time: {line}");
        } else if let Some(rest) = event.strip_prefix("<... ") {
            let (_, rest) = rest.split_once(" resumed>").expect("a resumed call");
            let (began, start) = open.remove(thread).expect("it began");
            calls.extend(call(began, number, &format!("{start}{rest}")));
        } else {
            calls.extend(call(number, number, event));
        }
    }
    calls.sort_by_key(|call| (call.began, call.ended));
    calls
}

/// Reads one call; `None` for one that the end of its process cut off.
fn call(began: usize, ended: usize, text: &str) -> Option<Call> {
    let (name, rest) = text.split_once('(').unwrap_or_else(|| panic!("no call: {text}"));
    let mut call = Call {
        began,
        ended,
        name: name.to_owned(),
        files: Vec::new(),
        data: Vec::new(),
        last_number: None,
        result: 0,
    };
    let mut rest = rest;
    // Strings and names may hold anything, so they are taken out first.
    let mut plain = String::new();
    while let Some(at) = rest.find(['"', '<']) {
        plain.push_str(&rest[..at]);
        let quote = &rest[at + 1..];
        rest = if rest[at..].starts_with('"') {
            let (data, rest) = string(quote);
            call.data.push(data);
            assert!(!rest.starts_with("..."), "data is written down whole: {name}");
            rest
        } else {
            let (file, rest) = quote.split_once('>').expect("a file's name ends");
            call.files.push(file.to_owned());
            rest
        };
    }
    plain.push_str(rest);
    let (arguments, result) = plain.rsplit_once(" = ").expect("it returned");
    let result = result.split(' ').next().unwrap_or_default();
    if result == "?" {
        return None;
    }
    call.result = result.parse().unwrap_or_else(|_| panic!("no result: {text}"));
    let arguments = arguments.trim_end().strip_suffix(')').expect("its arguments end");
    call.last_number = arguments.rsplit(", ").next().and_then(|number| number.trim().parse().ok());
    Some(call)
}

/// Reads a string as C writes it, up to its closing quote, and returns what follows.
fn string(text: &str) -> (Vec<u8>, &str) {
    let bytes = text.as_bytes();
    let (mut data, mut at) = (Vec::new(), 0);
    while bytes[at] != b'"' {
        if bytes[at] != b'\\' {
            data.push(bytes[at]);
            at += 1;
            continue;
        }
        let digits = bytes[at + 1..].iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte));
        let digits = digits.count();
        if digits > 0 {
            let octal = &text[at + 1..=at + digits];
            data.push(u8::from_str_radix(octal, 8).unwrap());
            at += 1 + digits;
            continue;
        }
        data.push(match bytes[at + 1] {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 0x0b,
            b'f' => 0x0c,
            byte @ (b'"' | b'\\') => byte,
            other => panic!("unknown escape {}", char::from(other)),
        });
        at += 2;
    }
    (data, &text[at + 1..])
}

#[cfg(test)]
mod tests;
