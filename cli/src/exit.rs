//! Exit codes: a public table, kept in README.md and shown by `gleaner help exit-codes`.

/// How the process ends. Numbers follow `sysexits.h` where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything that was asked for was done.
    Ok,
    /// A check failed as asked: books do not balance, or `doctor` found a fault.
    CheckFailed,
    /// A job ended as failed, cancelled, or was given up.
    JobFailed,
    /// The deadline passed; the job is still owed.
    Timeout,
    /// The platform does not know the job, or the ledger does not.
    NotFound,
    /// Nothing of what was asked for could be proved: nothing was compared.
    Unproved,
    /// The command line, or a URL or id on it, is wrong.
    Usage,
    /// A file, body or stored row cannot be understood.
    Data,
    /// The platform or the network is down; nothing was decided.
    Unavailable,
    /// A bug of ours.
    Bug,
    /// The system refused: no space, no port, a file in use.
    System,
    /// Try again later: throttled, paused, or held by another process.
    TryAgain,
    /// The API key or the AWS credentials were refused, or may not do this.
    Denied,
    /// The account is out of tokens.
    PaymentRequired,
    /// A setting is missing or wrong.
    Configuration,
}

impl Exit {
    /// All codes, in the order of their numbers.
    pub const ALL: [Self; 15] = [
        Self::Ok,
        Self::CheckFailed,
        Self::JobFailed,
        Self::Timeout,
        Self::NotFound,
        Self::Unproved,
        Self::Usage,
        Self::Data,
        Self::Unavailable,
        Self::Bug,
        Self::System,
        Self::TryAgain,
        Self::Denied,
        Self::Configuration,
        Self::PaymentRequired,
    ];

    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::CheckFailed => 1,
            Self::JobFailed => 2,
            Self::Timeout => 3,
            Self::NotFound => 4,
            Self::Unproved => 5,
            Self::Usage => 64,
            Self::Data => 65,
            Self::Unavailable => 69,
            Self::Bug => 70,
            Self::System => 71,
            Self::TryAgain => 75,
            Self::Denied => 77,
            Self::Configuration => 78,
            Self::PaymentRequired => 79,
        }
    }

    /// What the code says, for the table.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "everything that was asked for was done",
            Self::CheckFailed => {
                "a check failed as asked: the books of `demo` or `audit` do not balance, or `doctor` \
                 found a fault"
            }
            Self::JobFailed => "a job ended as failed or cancelled, or was given up",
            Self::Timeout => "the deadline passed; the job is still owed",
            Self::NotFound => "the job, run or webhook is not known",
            Self::Unproved => {
                "nothing could be proved: the period of `audit` is too fresh, or too old for the \
                 ledger to remember"
            }
            Self::Usage => "the command line, or a URL or id on it, is wrong",
            Self::Data => "a file, body or stored row cannot be understood",
            Self::Unavailable => "the platform or the network is down; nothing was decided",
            Self::Bug => "a bug in gleaner; please report it",
            Self::System => "the system refused: no space, port in use, file in use",
            Self::TryAgain => "try again later: throttled, paused, or held by another process",
            Self::Denied => "the API key or the AWS credentials were refused, or may not do this",
            Self::Configuration => "a setting is missing or wrong",
            Self::PaymentRequired => "the account is out of tokens",
        }
    }
}
