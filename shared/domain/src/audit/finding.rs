//! What disagrees.

use crate::job::JobKey;

/// A way in which the sources disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Discrepancy {
    /// The platform names a job that it has finished, and the ledger does not know it.
    UnknownJob,
    /// The platform has a result, and the row says that there is none to be had, or the row says
    /// that it is stored, and the platform that the job gave none.
    StateDiffers,
    /// A row is owed, and nobody has looked at it when somebody should have.
    Overdue,
    /// A submission was not answered, and nobody has looked for its job when somebody should have.
    OverdueSubmission,
    /// A row says where its result is, and there is none.
    ObjectMissing,
    /// A stored result is another than the row says, or is damaged.
    ObjectDiffers,
    /// An object lies in the result store that no row could have put there.
    UnownedObject,
    /// A row of the ledger does not decode.
    UnreadableRow,
    /// The platform counts fewer requests than jobs which it lists as finished.
    StatisticsDiffer,
}

impl Discrepancy {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::UnknownJob,
        Self::StateDiffers,
        Self::Overdue,
        Self::OverdueSubmission,
        Self::ObjectMissing,
        Self::ObjectDiffers,
        Self::UnownedObject,
        Self::UnreadableRow,
        Self::StatisticsDiffer,
    ];

    /// The name in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownJob => "unknown_job",
            Self::StateDiffers => "state_differs",
            Self::Overdue => "overdue",
            Self::OverdueSubmission => "overdue_submission",
            Self::ObjectMissing => "object_missing",
            Self::ObjectDiffers => "object_differs",
            Self::UnownedObject => "unowned_object",
            Self::UnreadableRow => "unreadable_row",
            Self::StatisticsDiffer => "statistics_differ",
        }
    }

    /// What to do about it.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::UnknownJob => "`gleaner reconcile` announces it",
            Self::StateDiffers => {
                "`gleaner explain` it; `gleaner dead redrive` tries a dead one again"
            }
            Self::Overdue | Self::OverdueSubmission => {
                "`gleaner sweep` looks now; see whether the scheduler runs"
            }
            Self::ObjectMissing => {
                "restore it from a backup or an older version: the ledger does not store a result \
                 twice"
            }
            Self::ObjectDiffers => {
                "restore it from a backup or an older version, and find who may write there"
            }
            Self::UnownedObject => "find who else writes there; remove it if nobody needs it",
            Self::UnreadableRow => {
                "see whether a newer gleaner wrote it; otherwise it is damaged: restore it"
            }
            Self::StatisticsDiffer => {
                "see whether the API key is that of another account; else ask the platform, whose \
                 own figures disagree"
            }
        }
    }
}

/// One thing that disagrees.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// In which way.
    pub discrepancy: Discrepancy,
    /// The job, if it is about one.
    pub key: Option<JobKey>,
    /// The facts that disagree.
    pub facts: String,
}
