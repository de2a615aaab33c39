//! The simulator's own endpoints: books, counters and switches for faults.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::faults::Faults;
use crate::platform::Platform;
use crate::query::Query;
use crate::route::Endpoint;

impl Platform {
    pub(crate) fn health(&self) -> Answer {
        let version = env!("CARGO_PKG_VERSION");
        Answer::json(
            200,
            json!({ "service": "scraper-api-simulator", "status": "ok", "timestamp": self.now,
                    "version": version }),
        )
    }

    /// Answers the simulator's own endpoints, which know no faults.
    pub(crate) fn backstage(&mut self, endpoint: Endpoint<'_>, call: &Call<'_>) -> Answer {
        match endpoint {
            Endpoint::Books => self
                .books_page(&Query::parse(call.query))
                .unwrap_or_else(|problems| Answer::invalid(&problems)),
            Endpoint::Counters => Answer::json(200, self.counters_json()),
            Endpoint::SetFaults => self.switch_faults(read_faults(call.body)),
            Endpoint::ChangeFaults => {
                let changed = change_faults(&self.config.faults, call.body);
                self.switch_faults(changed)
            }
            _ => Answer::json(200, json!(self.config.faults)),
        }
    }

    fn switch_faults(&mut self, faults: Result<Faults, String>) -> Answer {
        let checked = faults
            .and_then(|faults| faults.check().map_err(|error| error.to_string()).map(|()| faults));
        match checked {
            Ok(faults) => {
                self.set_faults(faults);
                Answer::json(200, json!(self.config.faults))
            }
            Err(message) => Answer::detail(422, &message),
        }
    }
}

/// Reads a faults document: the faults themselves, or the name of a preset.
fn read_faults(body: &[u8]) -> Result<Faults, String> {
    if let Ok(name) = serde_json::from_slice::<String>(body) {
        return Faults::preset(&name).ok_or_else(|| format!("no preset `{name}`"));
    }
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

/// Lays a partial faults document over the faults in force.
fn change_faults(faults: &Faults, body: &[u8]) -> Result<Faults, String> {
    let change: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let mut document = json!(faults);
    for (group, members) in change.as_object().into_iter().flatten() {
        for (name, value) in members.as_object().into_iter().flatten() {
            // A name that does not exist is put in all the same and refused when it is read.
            match document.get_mut(group).and_then(Value::as_object_mut) {
                Some(fields) => {
                    fields.insert(name.clone(), value.clone());
                }
                None => return Err(format!("no faults called `{group}`")),
            }
        }
    }
    serde_json::from_value(document).map_err(|error| error.to_string())
}
