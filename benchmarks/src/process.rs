//! Another process: what it used, and its end.

use std::process::{Child, Command};

use anyhow::{Context as _, Result};

/// Clock ticks a second in `/proc/PID/stat` (`USER_HZ`, 100 on every Linux architecture in use).
const TICKS_A_SECOND: f64 = 100.0;

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) child: Child,
}

impl Process {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().with_context(|| format!("cannot start {program}"))?;
        Ok(Self { child })
    }

    /// Processor seconds so far, user and system, of all its threads.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        let stat = self.read("stat")?;
        // The second field is the name in parentheses, which may hold spaces.
        let (_, rest) = stat.rsplit_once(')').context("/proc/PID/stat has no name")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |at: usize| -> Result<f64> {
            Ok(fields.get(at).context("/proc/PID/stat is short")?.parse::<f64>()?)
        };
        // Fields 14 and 15 of proc(5), counted from the state, which is field 3.
        Ok((ticks(11)? + ticks(12)?) / TICKS_A_SECOND)
    }

    /// Its largest resident memory so far, in MiB.
    pub(crate) fn peak_mib(&self) -> Result<f64> {
        self.status_mib("VmHWM:")
    }

    /// Its resident memory now, in MiB.
    pub(crate) fn resident_mib(&self) -> Result<f64> {
        self.status_mib("VmRSS:")
    }

    fn status_mib(&self, name: &str) -> Result<f64> {
        let status = self.read("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.split_whitespace().next());
        let kib: f64 = kib.with_context(|| format!("/proc/PID/status has no {name}"))?.parse()?;
        Ok(kib / 1024.0)
    }

    fn read(&self, name: &str) -> Result<String> {
        let path = format!("/proc/{}/{name}", self.child.id());
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself: nothing is left to be done then.
        if self.child.kill().is_ok() {
            let _ended = self.child.wait();
        }
    }
}
