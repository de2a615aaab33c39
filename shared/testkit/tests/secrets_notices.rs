//! The suite notices sources of secrets that do not do what the port promises: each flaw here
//! fails a behaviour.

#![expect(clippy::unwrap_used, reason = "what prepares a test fails by panicking, too")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use domain::ports::{ErrorKind, LoadedSecrets, PortError, SecretSource};
use domain::signature::secret::{Secret, Stage};
use testkit::conformance::{Absence, Kept, SecretsCaps, SecretsSubject, secrets};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    ForgetsStages,
    TrimsQuotes,
    NeverReloads,
    KeepsTheLastOne,
    SkipsTheUnreadable,
    QuotesTheUnreadable,
    TakesUnreadableForUnavailable,
    TakesDeniedForNone,
    GivesEachOnce,
    FailsOnNothing,
}

/// What is there: secrets, texts that are none, and whether it may be read.
type Held = (Vec<Secret>, Vec<String>, bool);

#[derive(Default)]
struct State {
    held: Held,
    cached: Option<Vec<Secret>>,
}

struct Flawed(Mutex<State>, Flaw);

impl Flawed {
    fn keep(&self, kept: Kept<'_>) {
        let held = match kept {
            Kept::Secrets(secrets) => (secrets.to_vec(), Vec::new(), true),
            Kept::Unreadable { beside, text } => {
                (vec![beside.clone()], vec![text.to_owned()], true)
            }
            Kept::Locked(secret) => (vec![secret.clone()], Vec::new(), false),
            Kept::Nothing => (Vec::new(), Vec::new(), true),
        };
        self.0.lock().unwrap().held = held;
    }

    fn read(&self, (secrets, texts, is_open): &Held) -> Result<Vec<Secret>, PortError> {
        let failed = |kind| PortError::new("secrets", "load", kind);
        if !is_open {
            let is_hidden = self.1 == Flaw::TakesDeniedForNone;
            return if is_hidden { Ok(Vec::new()) } else { Err(failed(ErrorKind::Denied)) };
        }
        let mut secrets = secrets.clone();
        for text in texts {
            match (Secret::parse_stored(text), self.1) {
                (Ok(secret), _) => secrets.push(secret),
                (Err(_), Flaw::SkipsTheUnreadable) => {}
                (Err(_), Flaw::QuotesTheUnreadable) => {
                    return Err(failed(ErrorKind::Corrupt).with_source(text.clone()));
                }
                (Err(_), Flaw::TakesUnreadableForUnavailable) => {
                    return Err(failed(ErrorKind::Unavailable));
                }
                (Err(error), _) => return Err(failed(ErrorKind::Corrupt).with_source(error)),
            }
        }
        if secrets.is_empty() && self.1 == Flaw::FailsOnNothing {
            return Err(failed(ErrorKind::Unavailable));
        }
        Ok(secrets)
    }
}

#[async_trait]
impl SecretSource for Flawed {
    async fn load(&self) -> Result<LoadedSecrets, PortError> {
        let mut state = self.0.lock().unwrap();
        let mut secrets = self.read(&state.held)?;
        match self.1 {
            Flaw::ForgetsStages => {
                secrets = secrets.into_iter().map(|it| it.with_stage(Stage::Current)).collect();
            }
            Flaw::TrimsQuotes => {
                let trim = |it: &Secret| Secret::new(it.expose().trim_matches('"')).unwrap();
                secrets = secrets.iter().map(trim).collect();
            }
            Flaw::NeverReloads => secrets.clone_from(state.cached.get_or_insert(secrets.clone())),
            Flaw::KeepsTheLastOne if secrets.is_empty() => {
                secrets = state.cached.clone().unwrap_or_default();
            }
            Flaw::KeepsTheLastOne => state.cached = Some(secrets.clone()),
            Flaw::GivesEachOnce => state.held.0.clear(),
            _ => {}
        }
        Ok(secrets.into())
    }
}

fn subject(flaw: Flaw) -> SecretsSubject {
    let caps = SecretsCaps { is_live: true, keeps_stages: true, absence: Absence::Empty };
    let source = Arc::new(Flawed(Mutex::default(), flaw));
    SecretsSubject::new(caps, move |kept| {
        source.keep(kept);
        Some(source.clone())
    })
}

macro_rules! notices {
    ($($flaw:ident in $behaviour:ident),+ $(,)?) => {
        /// Each flaw fails the behaviour that forbids it, which a sound source shows.
        #[test]
        fn every_flaw_is_noticed() {
            $(
                for (flaw, expected) in [(Flaw::None, false), (Flaw::$flaw, true)] {
                    let subject = subject(flaw);
                    let behaviour =
                        AssertUnwindSafe(|| testkit::run(secrets::$behaviour(&subject)));
                    assert_eq!(catch_unwind(behaviour).is_err(), expected, "{:?}", Flaw::$flaw);
                }
            )+
        }
    };
}

notices! {
    ForgetsStages in every_secret_comes_with_its_stage,
    TrimsQuotes in odd_secrets_come_as_they_are,
    NeverReloads in a_changed_secret_is_seen_by_the_next_load,
    KeepsTheLastOne in a_changed_secret_is_seen_by_the_next_load,
    NeverReloads in a_load_during_a_change_sees_one_of_both,
    SkipsTheUnreadable in an_unreadable_secret_is_corrupt_and_not_shown,
    QuotesTheUnreadable in an_unreadable_secret_is_corrupt_and_not_shown,
    TakesUnreadableForUnavailable in an_unreadable_secret_is_corrupt_and_not_shown,
    TakesDeniedForNone in a_locked_secret_is_denied,
    GivesEachOnce in repeated_loads_are_alike,
    GivesEachOnce in many_load_at_a_time,
    FailsOnNothing in nothing_is_no_secret,
}
