//! The ways of waiting that are compared.

use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Result, bail};
use async_trait::async_trait;
use domain::job::{JobId, JobKey};
use domain::poll::{Crew, News, Patience, Polled, RoundsEnded, poll, poll_open};
use domain::ports::{Clock as _, Due as _, Jobs as _, PortError, TaskSource as _};
use domain::time::{Timestamp, after};
use domain::work::{Look, look};
use futures_util::future::try_join_all;

use super::world::World;
use super::{Outcome, Strategy};

/// How long the waits may last: longer than the longest job, which takes 20 medians.
const MAX_WAIT: Duration = Duration::from_hours(2);
/// The defaults of `gleaner poll`.
const BASE: Duration = Duration::from_secs(1);
const CAP: Duration = Duration::from_secs(30);
/// The pause of the loop that people write first, and of the platform's own clients.
const FIXED: Duration = Duration::from_secs(3);
/// How long a call of that loop may take.
const CALL: Duration = Duration::from_secs(30);
/// Tasks taken at once, how long they are held, and rows swept in a round.
const TAKE_MAX: u32 = 64;
const HOLD: Duration = Duration::from_mins(10);
const SWEEP_ROWS: u32 = 1_000;

/// Submits all jobs and waits until the result of each is there.
pub(super) fn wait_for_all(strategy: Strategy, seed: u64) -> Result<Outcome> {
    let world = World::new(seed)?;
    let keys = world.run(world.submit())??;
    let begun = world.now();
    let patience = Patience { deadline: after(begun, MAX_WAIT), base: BASE, cap: CAP };
    let stored = match strategy {
        Strategy::Bulk => {
            let crew = Workers { world: &world };
            let rounds = poll_open(world.ports(), &crew, patience, SWEEP_ROWS, false);
            let ended = world.run(rounds)??;
            if ended != RoundsEnded::Done {
                bail!("the rounds ended early: {ended:?}");
            }
            world.stored()?
        }
        Strategy::Single => {
            let waits = keys.iter().map(|key| poll(world.ports(), key, patience));
            for polled in world.run(try_join_all(waits))?? {
                if !matches!(polled, Polled::Settled(_)) {
                    bail!("a wait ended early: {polled:?}");
                }
            }
            world.stored()?
        }
        Strategy::FixedLoop => world.run(fixed_loop(&world, keys))??,
    };
    world.outcome(begun, &stored)
}

/// Asks for each open job, again and again.
async fn fixed_loop(world: &World, keys: Vec<JobKey>) -> Result<Vec<(JobId, Timestamp)>> {
    let mut stored = Vec::new();
    let mut open = keys;
    while !open.is_empty() {
        let mut unfinished = Vec::new();
        for key in open {
            let job = world.jobs.extract(&key.job_id, CALL).await?;
            if job.status.is_terminal() {
                stored.push((key.job_id, world.now()));
            } else {
                unfinished.push(key);
            }
        }
        open = unfinished;
        world.clock.sleep(FIXED).await;
    }
    Ok(stored)
}

/// Works the tasks of the queue, as the workers of `gleaner poll` do.
struct Workers<'a> {
    world: &'a World,
}

#[async_trait]
impl Crew for Workers<'_> {
    async fn work(&self, deadline: Timestamp) -> Result<ControlFlow<()>, PortError> {
        loop {
            let taken = self.world.queue.receive(TAKE_MAX, HOLD).await?;
            if taken.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            for held in taken {
                look(self.world.ports(), &held.task, Look::ScheduledUntil(deadline)).await?;
                self.world.queue.acknowledge(&held).await?;
            }
        }
    }

    async fn wait(&self, longest: Duration) -> Result<(), PortError> {
        self.world.clock.sleep(longest).await;
        Ok(())
    }

    async fn is_done(&self) -> Result<bool, PortError> {
        let open = self.world.ledger.list_due(Timestamp::MAX, None, 1).await?;
        Ok(open.items.is_empty())
    }

    fn hear(&self, _: News<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
