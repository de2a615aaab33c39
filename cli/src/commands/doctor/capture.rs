//! `gleaner doctor --capture` and `--from`: which verification settings accept a real delivery.

mod fixture;
mod listen;
mod outcome;
mod redact;
mod request;
mod written;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::ports::Clock as _;
use domain::signature::detect::{Detected, detect, simplest};
use domain::signature::secret::Secret;
use domain::signature::verdict::Verdict;
use domain::signature::verify;
use domain::time::between;
use settings::Settings;
use tokio::task::spawn_blocking;

use self::fixture::Fixture;
use self::listen::Listening;
use self::outcome::{Found, InForce, Outcome, Saved, Told, read_envelope};
use self::request::Delivery;
use crate::backend::Site;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, note};
use system::SystemClock;

/// Longest wait for a delivery, unless another one is given.
pub(super) const WAIT: Duration = Duration::from_mins(10);
/// Where a captured delivery's fixture goes, unless another file is named.
const FIXTURE: &str = "gleaner-delivery.http";

/// What to do about a file that cannot be written.
const NEW_FILE: &str = "name a file that is not there yet";

/// Where the delivery comes from.
pub(super) enum Source {
    /// The platform, which is waited for.
    Wire {
        /// Where to listen, if not where the settings say.
        listen: Option<SocketAddr>,
        within: Duration,
    },
    /// A file.
    File(PathBuf),
}

/// What is asked for.
pub(super) struct Capture {
    pub(super) source: Source,
    /// Where the redacted delivery goes.
    pub(super) fixture: Option<PathBuf>,
    /// Where the delivery goes as it is.
    pub(super) keep: Option<PathBuf>,
}

impl Capture {
    /// Gets the delivery, tries everything on it, and tells what was found.
    ///
    /// # Errors
    /// When there is no secret, no delivery, or a file cannot be read or written.
    pub(super) async fn run(self, output: Output, settings: &Settings) -> Result<Exit, CliError> {
        // Before anybody waits for what could not be kept.
        for path in [&self.fixture, &self.keep].into_iter().flatten() {
            check_new(path)?;
        }
        let site = Site::of(settings).await?;
        let secrets = secrets(&site).await?;
        let settings = &site.settings;
        let (deliveries, answered) = match &self.source {
            Source::File(path) => (request::read(path)?, None),
            Source::Wire { listen, within } => {
                let address = listen.unwrap_or(settings.listen);
                let listening = Listening::start(address, settings, &secrets).await?;
                output.print(&listening.started())?;
                note(&format!(
                    "waiting for one delivery, for at most {} s; it is answered 503, so that the \
                     platform sends it again and nothing is lost",
                    within.as_secs()
                ));
                (vec![listening.wait(*within).await?], Some(listen::ANSWER))
            }
        };
        // What goes wrong with a file is said after what was found out.
        let kept = match (&self.keep, deliveries.first()) {
            (Some(path), Some(delivery)) => save(path, &delivery.to_bytes()),
            _ => Ok(()),
        };
        let Examined { delivery, detected } = examine(deliveries, secrets.clone()).await?;
        let (fixture, saved) = match self.save_fixture(settings, &delivery, &detected, &secrets) {
            Ok(fixture) => (fixture, Ok(())),
            Err(error) => (None, Err(error)),
        };
        let now = SystemClock.now();
        let verdict = verify(&settings.scheme, &delivery.headers, &delivery.body, &secrets, now);
        let reason = match &verdict {
            Verdict::Verified(_) => None,
            Verdict::Rejected(reason) => Some(reason.code()),
            Verdict::Unconfigured(reason) => Some(reason.code()),
        };
        let found = detected.forms.iter().map(|form| {
            let short = simplest(form, &delivery.headers, &delivery.body, &secrets);
            let age = form.signed_at.map(|at| between(at, now));
            Found::of(form, short.as_ref(), age)
        });
        let outcome = Outcome::new(Told {
            answered,
            in_force: InForce { accepted: reason.is_none(), reason },
            found: found.collect::<Result<_, _>>()?,
            tried: detected.tried,
            envelope: read_envelope(&delivery, &settings.envelope, &secrets),
            fixture,
            is_on_aws: settings.backend != settings::Backend::Embedded,
            delivery: &delivery,
        });
        output.print(&outcome)?;
        kept.and(saved)?;
        Ok(if outcome.is_found() { Exit::Ok } else { Exit::CheckFailed })
    }

    /// Saves the redacted delivery, signed anew; `None` if nobody asked for it or no form is known.
    fn save_fixture(
        &self,
        settings: &Settings,
        delivery: &Delivery,
        detected: &Detected,
        secrets: &[Secret],
    ) -> Result<Option<Saved>, CliError> {
        let path = match (&self.fixture, &self.source) {
            (Some(path), _) => path.clone(),
            (None, Source::Wire { .. }) => PathBuf::from(FIXTURE),
            (None, Source::File(_)) => return Ok(None),
        };
        let Some(form) = detected.forms.first() else { return Ok(None) };
        if self.fixture.is_none() && path.exists() {
            note(&format!(
                "note: `{}` is there already, so no fixture is saved; name another file with \
                 --fixture",
                path.display()
            ));
            return Ok(None);
        }
        let fixture = Fixture::of(delivery, form, &settings.webhook_path, secrets)?;
        save(&path, &fixture.bytes)?;
        Ok(Some(Saved { file: path.display().to_string(), secret: fixture.secret }))
    }
}

/// A delivery, and what was found out about it.
struct Examined {
    delivery: Delivery,
    detected: Detected,
}

/// Tries everything on a delivery, in each of the readings that its file allows. Hashing may take
/// seconds.
async fn examine(deliveries: Vec<Delivery>, secrets: Vec<Secret>) -> Result<Examined, CliError> {
    let broken = || CliError::new(Exit::Bug, "the search broke down");
    let searching = spawn_blocking(move || {
        let mut first = None;
        for delivery in deliveries {
            let detected = detect(&delivery.headers, &delivery.body, &secrets);
            let is_found = !detected.forms.is_empty();
            let examined = Examined { delivery, detected };
            if is_found {
                return Some(examined);
            }
            first.get_or_insert(examined);
        }
        first
    });
    searching.await.map_err(|error| broken().because(error))?.ok_or_else(broken)
}

/// The usable signing secrets that are here.
async fn secrets(site: &Site) -> Result<Vec<Secret>, CliError> {
    let held = site.held().await;
    let mut secrets = Vec::new();
    for held in held {
        match held.secret {
            Ok(secret) => secrets.push(secret),
            Err(reason) => note(&format!(
                "note: the {} secret in {} cannot be used: {reason}",
                held.stage.as_str(),
                held.place
            )),
        }
    }
    if secrets.is_empty() {
        return Err(CliError::new(Exit::Configuration, "there is no signing secret").hint(
            "register webhooks with `gleaner webhooks create --url URL`, or set \
             GLEANER_WEBHOOK_SECRET to the secret that the sender shows",
        ));
    }
    Ok(secrets)
}

/// Requires that a file is not there yet.
fn check_new(path: &Path) -> Result<(), CliError> {
    if path.exists() {
        let text = format!("the file `{}` is there already", path.display());
        return Err(CliError::new(Exit::Usage, text).hint(NEW_FILE));
    }
    Ok(())
}

/// Writes a new file that only its owner may read.
fn save(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(|error| {
        let text = format!("cannot write the file `{}`", path.display());
        CliError::new(Exit::System, text).because(error).hint(NEW_FILE)
    })
}
