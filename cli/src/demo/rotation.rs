//! The rotation in the middle: `gleaner rotate`, as an operator runs it beside the server.

use std::sync::Arc;
use std::time::Duration;

use domain::job::Kind;
use domain::ports::Clock as _;
use domain::time::between;
use serde::Serialize;
use system::SystemClock;

use super::folder::Folder;

/// Most runs for one webhook: the weather hits them as well.
const RUNS_MAX: u32 = 20;
/// Pause before a run that did not come to its end is repeated.
const RUN_PAUSE: Duration = Duration::from_secs(2);

/// How the secrets of all webhooks were replaced.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rotated {
    /// Webhooks whose secret was replaced.
    pub webhooks: u32,
    /// Webhooks whose secret was to be replaced.
    pub of: u32,
    /// Runs of `gleaner rotate` that it took.
    pub runs: u32,
    /// Seconds from the first run's start to the last one's end.
    pub secs: f64,
    /// What the last run said that did not come to its end.
    pub trouble: Option<String>,
}

/// Replaces the secret of each webhook, one after the other.
pub(super) async fn rotate(folder: Arc<Folder>) -> Rotated {
    let started = SystemClock.now();
    let mut rotated = Rotated::default();
    for kind in Kind::ALL {
        rotated.of += 1;
        for _ in 0..RUNS_MAX {
            rotated.runs += 1;
            let trouble = match folder.run(&["rotate", "--json", "--event", kind.as_str()]).await {
                Ok(ran) if ran.code == Some(0) => {
                    rotated.webhooks += 1;
                    break;
                }
                Ok(ran) => ran.talk.trim().to_owned(),
                Err(error) => error.to_string(),
            };
            rotated.trouble = Some(trouble);
            SystemClock.sleep(RUN_PAUSE).await;
        }
    }
    rotated.secs = between(started, SystemClock.now()).as_secs_f64();
    rotated
}
