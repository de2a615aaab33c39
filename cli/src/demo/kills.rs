//! Kills of the serving process at seeded moments, and the rotation in the middle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use domain::ports::Clock;
use domain::time::{Timestamp, after};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::DemoOptions;
use super::folder::Folder;
use super::plan::Dice;
use super::platform::Control;
use super::process::Process;
use super::rotation::{Rotated, rotate};
use crate::error::CliError;
use crate::exit::Exit;

/// Pause between two looks at how far the platform is.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// Share of the planned jobs, in thousandths, that the platform has finished when the first and the
/// last kill fall due. A few never finish.
const KILLS: (u64, u64) = (10, 900);
/// The same for the rotation.
const ROTATION: u64 = 500;
/// Longest wait, in milliseconds, from the moment in which a kill falls due: it falls anywhere in
/// the server's work.
const AIM_MS: (u64, u64) = (0, 400);
/// How long the server stays down, in milliseconds.
const DOWN_MS: (u64, u64) = (0, 300);
/// Pause between two kills while a rotation goes on, in milliseconds.
const WITHIN_ROTATION_MS: (u64, u64) = (300, 2_000);
/// One kill in so many is kept for the rotation, one at least.
const SHARE_OF_ROTATION: u32 = 10;

/// What is done to the server, and when.
pub(super) struct Script {
    /// How far the platform is at each kill, in thousandths, in order.
    kills: Vec<u64>,
    /// Kills that are kept for the rotation.
    kept: u32,
    rotate: bool,
    /// Jobs that are planned.
    jobs: u64,
    dice: Dice,
}

/// What was done to the server.
#[derive(Debug, Default)]
pub(super) struct Driven {
    /// Kills.
    pub(super) kills: u32,
    /// Kills of them that fell into the rotation.
    pub(super) kills_while_rotating: u32,
    /// How the rotation went, if there was one.
    pub(super) rotated: Option<Rotated>,
}

impl Script {
    pub(super) fn of(options: &DemoOptions, jobs: usize) -> Self {
        let dice = Dice::new(options.seed ^ 0x6b69_6c6c);
        let kept = if options.rotate { options.kills.div_ceil(SHARE_OF_ROTATION) } else { 0 };
        let mut kills: Vec<u64> = (kept..options.kills).map(|_| dice.between(KILLS)).collect();
        kills.sort_unstable();
        let jobs = u64::try_from(jobs).unwrap_or(u64::MAX).max(1);
        Self { kills, kept, rotate: options.rotate, jobs, dice }
    }

    fn wait(&self, range: (u64, u64)) -> Duration {
        Duration::from_millis(self.dice.between(range))
    }
}

/// What is driven.
pub(super) struct Stage<'a> {
    pub(super) folder: Arc<Folder>,
    pub(super) control: &'a Control,
    pub(super) clock: &'a dyn Clock,
    /// Counts the kills for whoever watches.
    pub(super) counted: &'a AtomicU32,
}

/// How far the rotation is.
enum Rotation {
    /// It has not begun, or never will.
    Ahead,
    Running(JoinHandle<Rotated>),
    Over(Rotated),
}

impl Rotation {
    /// Learns whether it is over, or waits until it is.
    async fn look(&mut self, wait: bool) -> Result<(), CliError> {
        if let Self::Running(task) = self
            && (wait || task.is_finished())
        {
            let broken = |error| CliError::new(Exit::Bug, "the rotation broke").because(error);
            *self = Self::Over(task.await.map_err(broken)?);
        }
        Ok(())
    }
}

/// A script that is being followed.
struct Drive<'a> {
    script: &'a Script,
    stage: Stage<'a>,
    /// Kills that were made by the platform's progress.
    made: usize,
    /// Kills that are left for the rotation.
    kept: u32,
    rotation: Rotation,
    /// When the next kill falls into the rotation.
    next_within: Timestamp,
    driven: Driven,
}

/// Follows the script to its end, or until all is settled; starts the server again after each kill.
///
/// # Errors
/// When the server ends by itself or cannot be started.
pub(super) async fn drive(
    script: &Script,
    stage: Stage<'_>,
    mut process: Option<&mut Process>,
    settled: &watch::Receiver<bool>,
) -> Result<Driven, CliError> {
    let mut drive = Drive {
        script,
        made: 0,
        kept: script.kept,
        rotation: Rotation::Ahead,
        next_within: stage.clock.now(),
        driven: Driven::default(),
        stage,
    };
    while !*settled.borrow() {
        if let Some(process) = process.as_deref_mut() {
            process.check()?;
        }
        drive.rotation.look(false).await?;
        if drive.is_over() {
            break;
        }
        let progress = drive.progress().await;
        drive.rotate_at(progress);
        match process.as_deref_mut().filter(|_| drive.is_due(progress)) {
            Some(process) => drive.kill(process).await?,
            None => drive.stage.clock.sleep(LOOK_PAUSE).await,
        }
    }
    drive.rotation.look(true).await?;
    if let Rotation::Over(rotated) = drive.rotation {
        drive.driven.rotated = Some(rotated);
    }
    Ok(drive.driven)
}

impl Drive<'_> {
    fn is_over(&self) -> bool {
        let rotated = !self.script.rotate || matches!(self.rotation, Rotation::Over(_));
        rotated && self.made == self.script.kills.len() && self.kept == 0
    }

    /// Jobs that the platform has finished, in thousandths of those that are planned.
    async fn progress(&self) -> u64 {
        // An unanswered question is asked again in a moment.
        let finished = self.stage.control.finished().await.unwrap_or_default();
        finished.saturating_mul(1_000) / self.script.jobs
    }

    fn rotate_at(&mut self, progress: u64) {
        if self.script.rotate && matches!(self.rotation, Rotation::Ahead) && progress >= ROTATION {
            let folder = Arc::clone(&self.stage.folder);
            self.rotation = Rotation::Running(tokio::spawn(rotate(folder)));
            self.next_within = self.within();
        }
    }

    /// When the next kill falls into the rotation.
    fn within(&self) -> Timestamp {
        after(self.stage.clock.now(), self.script.wait(WITHIN_ROTATION_MS))
    }

    fn is_due(&self, progress: u64) -> bool {
        let by_progress = self.script.kills.get(self.made).is_some_and(|at| *at <= progress);
        by_progress || self.is_due_within()
    }

    fn is_due_within(&self) -> bool {
        self.kept > 0
            && match self.rotation {
                Rotation::Ahead => false,
                Rotation::Running(_) => self.stage.clock.now() >= self.next_within,
                // It was shorter than what was kept for it.
                Rotation::Over(_) => true,
            }
    }

    async fn kill(&mut self, process: &mut Process) -> Result<(), CliError> {
        if self.is_due_within() {
            self.kept -= 1;
        } else {
            self.made += 1;
            self.stage.clock.sleep(self.script.wait(AIM_MS)).await;
        }
        process.kill().await?;
        self.driven.kills += 1;
        self.stage.counted.fetch_add(1, Ordering::Relaxed);
        let is_rotating = matches!(&self.rotation, Rotation::Running(task) if !task.is_finished());
        self.driven.kills_while_rotating += u32::from(is_rotating);
        self.stage.clock.sleep(self.script.wait(DOWN_MS)).await;
        process.restart().await?;
        self.next_within = self.within();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(kills: u32, rotate: bool) -> DemoOptions {
        DemoOptions { kills, rotate, ..DemoOptions::calm(2_000) }
    }

    #[test]
    fn kills_are_spread_by_the_seed_and_some_are_kept_for_the_rotation() {
        let script = Script::of(&options(50, true), 2_000);
        assert_eq!((script.kills.len(), script.kept), (45, 5));
        assert!(script.kills.is_sorted() && script.kills.iter().all(|at| (10..=900).contains(at)));
        assert_eq!(script.kills, Script::of(&options(50, true), 2_000).kills);
        assert_eq!(Script::of(&options(1, true), 2_000).kept, 1);
        assert_eq!(Script::of(&options(3, false), 2_000).kills.len(), 3);
        assert_eq!(Script::of(&options(0, false), 2_000).kills.len(), 0);
    }
}
