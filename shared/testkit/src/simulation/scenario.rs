//! What happens in a simulation: drawn from a seed, and written down so that it can be cut.

use std::fmt;
use std::time::Duration;

use domain::job::Kind;
use domain::ports::Random as _;
use domain::rotate::Strategy;
use domain::testing::SeededRandom;

use super::account::Trouble;
use crate::faulty::Fault;

/// Steps of a scenario.
const STEPS: usize = 60;
/// Submissions that a scenario knows.
pub(super) const SUBMISSIONS: u64 = 10;
/// Calls of a process among which its faults fall.
const CALLS: u64 = 24;
/// Processes that run at once at most.
const CROWD_MAX: u64 = 4;

/// Everything that happens, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// What the platform's weather, chance and pace follow from.
    pub seed: u64,
    /// The operations.
    pub steps: Vec<Step>,
}

/// One operation, or several at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Names the step when others are cut, so that its own chance stays what it was.
    pub number: u64,
    /// Each is a process of its own.
    pub processes: Vec<(Operation, Vec<Ordeal>)>,
}

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Makes, or goes on with, a submission.
    Submit(u64),
    /// Somebody else uses the same account.
    SubmitElsewhere(u64),
    /// Takes the deliveries that are due, the first first or the last first.
    Deliver {
        /// Whether the last comes first.
        reversed: bool,
    },
    /// Takes tasks and works them.
    Work(u32),
    /// Works the first tasks of the queue, which somebody else may have taken: queues deliver twice.
    WorkAgain(u32),
    /// Recovers submissions whose answer was lost.
    Recover,
    /// Asks the job lists for what is overdue.
    BulkPoll,
    /// Sends tasks again.
    Sweep,
    /// Compares the job lists with the ledger.
    Reconcile,
    /// Compares the delivery logs with the ledger.
    Replay,
    /// Tries dead entries again.
    Redrive,
    /// The store begins to rotate the secret of a kind's webhook.
    BeginRotation(Kind, Strategy),
    /// The store invokes the next step of a rotation.
    RotationStep {
        /// Of which webhook.
        kind: Kind,
        /// Whether it is the last step once more.
        again: bool,
    },
    /// A person rotates: all steps.
    RotateWhole(Kind, Strategy),
    /// Works off the retirements.
    Retire,
    /// Brings the webhooks into the state that is wanted.
    Ensure,
    /// Everything that goes on by itself.
    Tick,
    /// Somebody switches a webhook off beside which another one delivers the same.
    Meddle(Kind),
    /// The account is in trouble for a while.
    Trouble(Trouble, Duration),
    /// All tasks in the queue are lost.
    LoseTasks,
    /// Time passes.
    Pass(Duration),
}

/// Something that befalls a call of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ordeal {
    /// Which call, counted from 0.
    pub call: usize,
    /// What.
    pub fault: Fault,
    /// Whether a call that hangs is the end of its process.
    pub kills: bool,
}

impl Scenario {
    /// The scenario of a seed.
    pub fn of(seed: u64) -> Self {
        let dice = Dice { random: SeededRandom::new(seed), kind: kind_of(seed), seed };
        let steps = (0..STEPS).map(|number| Step {
            number: u64::try_from(number).unwrap_or(u64::MAX),
            processes: dice.processes(),
        });
        Self { seed, steps: steps.collect() }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "seed {}", self.seed)?;
        for step in &self.steps {
            write!(out, "\n  {:>3}", step.number)?;
            for (operation, ordeals) in &step.processes {
                write!(out, " {operation:?}")?;
                for Ordeal { call, fault, kills } in ordeals {
                    let end = if *kills { ", the end" } else { "" };
                    write!(out, " [call {call}: {fault:?}{end}]")?;
                }
            }
        }
        Ok(())
    }
}

/// The kind whose webhook's secret a scenario rotates most.
fn kind_of(seed: u64) -> Kind {
    match seed % 5 {
        0 => Kind::Batch,
        1 => Kind::Crawl,
        _ => Kind::Extract,
    }
}

struct Dice {
    random: SeededRandom,
    kind: Kind,
    seed: u64,
}

impl Dice {
    fn below(&self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    fn processes(&self) -> Vec<(Operation, Vec<Ordeal>)> {
        if self.below(3) != 0 {
            return vec![(self.operation(), self.ordeals())];
        }
        // At once, and about the same if it can be: there most goes wrong.
        let count = 2 + self.below(CROWD_MAX - 1);
        let (theme, number) = (self.below(5), self.below(SUBMISSIONS));
        let tasks = u32::try_from(1 + self.below(4)).unwrap_or(1);
        let operation = |process: u64| match (theme, process % 3) {
            (0, _) => Operation::Submit(number),
            (1, 0) => Operation::Work(tasks),
            (1, 1) | (2, 0) => Operation::WorkAgain(tasks),
            (1, _) => Operation::Sweep,
            (2, 1) => Operation::Deliver { reversed: false },
            (2, _) => Operation::BulkPoll,
            (3, 0) => Operation::RotationStep { kind: self.kind, again: false },
            (3, _) => self.rotation(),
            _ => self.operation(),
        };
        (0..count).map(|process| (operation(process), self.ordeals())).collect()
    }

    fn operation(&self) -> Operation {
        match self.below(26) {
            20..=25 => self.rotation(),
            0..=4 => Operation::Submit(self.below(SUBMISSIONS)),
            5 => Operation::SubmitElsewhere(self.below(SUBMISSIONS)),
            6..=8 => Operation::Deliver { reversed: self.below(2) == 0 },
            9 | 10 => Operation::Work(u32::try_from(1 + self.below(5)).unwrap_or(1)),
            11 => Operation::WorkAgain(u32::try_from(1 + self.below(5)).unwrap_or(1)),
            12 => Operation::Recover,
            13 => Operation::BulkPoll,
            14 => Operation::Sweep,
            15 => Operation::Reconcile,
            16 => match self.below(4) {
                0 => Operation::Redrive,
                1 => Operation::LoseTasks,
                2 => Operation::Replay,
                _ => Operation::Pass(Duration::from_mins(self.below(90))),
            },
            _ => Operation::Pass(Duration::from_secs(1 + self.below(240))),
        }
    }

    /// Something about webhooks, or the account.
    fn rotation(&self) -> Operation {
        let kind = self.kind;
        match self.below(16) {
            0..=2 => Operation::BeginRotation(kind, self.strategy()),
            3..=7 => Operation::RotationStep { kind, again: false },
            8 => Operation::RotationStep { kind, again: true },
            9 | 10 => Operation::RotateWhole(kind, self.strategy()),
            11 => Operation::Retire,
            12 => Operation::Ensure,
            13 => Operation::Tick,
            14 => Operation::Meddle(kind),
            _ => {
                let lasts = Duration::from_mins(1 + self.below(20));
                let can_pay = self.below(2) != 0;
                let trouble = if can_pay { Trouble::Denied } else { Trouble::PaymentRequired };
                Operation::Trouble(trouble, lasts)
            }
        }
    }

    /// In some scenarios secrets are replaced in place now and then.
    fn strategy(&self) -> Strategy {
        let is_in_place = self.below(2) == 0 && self.seed % 4 == 3;
        if is_in_place { Strategy::InPlace } else { Strategy::Overlap }
    }

    fn ordeals(&self) -> Vec<Ordeal> {
        let count = match self.below(8) {
            0..=4 => 0,
            5 | 6 => 1,
            _ => 2,
        };
        let ordeal = |_| {
            let [first, second, third, fourth] = Fault::ALL;
            let fault = match self.below(4) {
                0 => first,
                1 => second,
                2 => third,
                _ => fourth,
            };
            let hangs = matches!(fault, Fault::HangBefore | Fault::HangAfter);
            Ordeal {
                call: usize::try_from(self.below(CALLS)).unwrap_or(0),
                fault,
                kills: hangs && self.below(4) != 0,
            }
        };
        (0..count).map(ordeal).collect()
    }
}
