//! What a person reads.

use std::fmt;
use std::time::Duration;

use super::{Found, Outcome, shown};
use crate::commands::doctor::capture::written::Written;
use crate::output::told;

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.content_type.as_deref().unwrap_or("no content type");
        write!(out, "delivery    {} bytes, {kind}", self.bytes)?;
        if let Some(coding) = &self.content_encoding {
            write!(out, ", {coding}")?;
        }
        if let Some(status) = self.answered {
            write!(
                out,
                "\nanswered    {status}: nothing is taken, and the platform sends it again"
            )?;
        }
        match self.in_force.reason {
            None => out.write_str("\nin force    the settings as they are accept it")?,
            Some(reason) => {
                write!(out, "\nin force    the settings as they are refuse it: {reason}")?;
            }
        }
        for found in &self.found {
            found.write(out, self.is_on_aws)?;
        }
        if self.found.is_empty() {
            self.write_tried(out)?;
        }
        self.write_envelope(out)?;
        let Some(fixture) = &self.fixture else { return Ok(()) };
        write!(out, "\nfixture     {}, redacted, and signed with a test secret:", fixture.file)?;
        write!(
            out,
            "\n            GLEANER_WEBHOOK_SECRET={} gleaner doctor --from {}",
            fixture.secret, fixture.file
        )
    }
}

impl Found {
    fn write(&self, out: &mut fmt::Formatter<'_>, is_on_aws: bool) -> fmt::Result {
        write!(out, "\nfound       {}: {}", self.header, self.form)?;
        write!(out, "\n            signed with the {} secret", self.stage)?;
        match &self.webhook_id {
            Some(id) => write!(out, " of webhook {id}")?,
            None => out.write_str(", which names no webhook")?,
        }
        if let Some(age) = self.age_secs {
            write!(out, ", {} ago", told(Duration::from_secs(age)))?;
        }
        for (number, line) in self.lines(is_on_aws).iter().enumerate() {
            write!(out, "\n{:<11} {line}", if number == 0 { "settings" } else { "" })?;
        }
        if self.settings.iter().all(|written| written != &self.scheme) {
            let whole = std::slice::from_ref(&self.scheme);
            let lines = if is_on_aws { parameters(whole) } else { None };
            let lines = lines.unwrap_or_else(|| of_file(whole));
            write!(out, "\nor in full  {}", lines.join(" "))?;
        }
        Ok(())
    }

    /// The settings as they are written: lines of the settings file, or parameters of the stack. A
    /// stack has no parameter for each of them, and then the scheme is spelled out.
    fn lines(&self, is_on_aws: bool) -> Vec<String> {
        if !is_on_aws {
            return of_file(&self.settings);
        }
        let whole = std::slice::from_ref(&self.scheme);
        parameters(&self.settings).or_else(|| parameters(whole)).unwrap_or_default()
    }
}

fn of_file(settings: &[Written]) -> Vec<String> {
    settings.iter().map(|written| format!("{} = {}", written.name, written.toml)).collect()
}

/// The parameters of the stack; `None` if there is not one for each.
fn parameters(settings: &[Written]) -> Option<Vec<String>> {
    let parameter = |written: &Written| Some(format!("{}={}", written.parameter?, written.text));
    settings.iter().map(parameter).collect()
}

impl Outcome {
    fn write_tried(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tried = &self.tried;
        out.write_str("\nfound       nothing: no secret that is here signed this in a known form")?;
        let or_none = |names: &[String]| match names {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        write!(out, "\ntried       signatures in: {}", or_none(&tried.signature_headers))?;
        write!(out, "\n            timestamps in: {}", or_none(&tried.timestamps))?;
        write!(out, "\n            ids in: {}", or_none(&tried.ids))?;
        write!(
            out,
            "\n            {} signatures, {} contents and {} keys against each other",
            tried.digests, tried.contents, tried.keys
        )?;
        if tried.is_cut {
            out.write_str(", as far as there was time")?;
        }
        let mut title = "look";
        for advice in self.advice() {
            write!(out, "\n{title:<11} {advice}")?;
            title = "";
        }
        Ok(())
    }

    /// What to look at where nothing was found, the likeliest first.
    fn advice(&self) -> Vec<String> {
        let mut advice = Vec::new();
        if let (Some(id), Some(false)) =
            (&self.envelope.webhook_id, self.envelope.webhook_secret_known)
        {
            advice.push(format!(
                "the body says that it comes from webhook {}, whose secret is not here: put it \
                 here, or delete that webhook and make it anew",
                shown(id)
            ));
        }
        if self.tried.digests == 0 {
            advice.push(format!(
                "no header has the shape of an HMAC-SHA256; there are: {}. A sender that signs \
                 nothing sends a fixed secret in a header: set it as the secret",
                self.headers.join(", ")
            ));
        } else {
            advice.push(
                "the secret: is it the one that the sender shows for this very webhook, and was it \
                 not replaced since?"
                    .to_owned(),
            );
            advice.push(
                "what is in between: a proxy that unpacks, packs or rewrites bodies breaks every \
                 signature"
                    .to_owned(),
            );
        }
        if let Some(reason) = self.tried.not_inflated {
            advice.push(format!("the body could not be unpacked: {reason}"));
        }
        advice
    }

    fn write_envelope(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.envelope.event, self.envelope.error) {
            (_, Some(error)) => write!(
                out,
                "\nenvelope    no job id can be read ({error}); `envelope.job_id` says where it is"
            ),
            (Some(event), None) if event.is_empty() => out.write_str(
                "\nenvelope    a job id, and no event type; `envelope.event` says where it is",
            ),
            (Some(event), None) => {
                write!(out, "\nenvelope    a job id and the event {}", shown(event))
            }
            (None, None) => Ok(()),
        }
    }
}
