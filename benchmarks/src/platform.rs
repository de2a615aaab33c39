//! The platform that the measured server talks to: `gleaner simulate` in a process of its own.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use crate::process::Process;
use crate::served::{Served, gleaner};

/// The simulator's own default key.
pub(crate) const API_KEY: &str = "simulated-key";
const KEY: &str = "X-Api-Key";
/// Submissions under way at once.
const SUBMISSIONS: usize = 64;

/// A running simulator whose jobs end at once, unless its settings say otherwise.
pub(crate) struct Platform {
    served: Served,
    pub(crate) url: String,
    client: reqwest::Client,
}

impl Platform {
    /// Starts it with results of this average size, in bytes.
    pub(crate) fn start(folder: &Path, result_bytes: u32) -> Result<Self> {
        let config = json!({
            "speed": 1_000_000.0,
            "work_concurrency_limit": 10_000_000,
            "result_bytes": result_bytes,
            "webhooks": { "concurrency": 256 },
        });
        let file = folder.join("simulator.json");
        std::fs::write(&file, config.to_string())?;
        let file = file.to_str().context("the folder's name is not UTF-8")?;
        let arguments = ["simulate", "--json", "--listen", "127.0.0.1:0", "--config", file];
        let served = Served::start(gleaner(folder, &arguments)?)?;
        let url = served.started.get("url").and_then(Value::as_str);
        let url = url.context("the simulator did not say where it listens")?.to_owned();
        Ok(Self { served, url, client: tls::client().no_proxy().build()? })
    }

    pub(crate) const fn process(&self) -> &Process {
        &self.served.process
    }

    /// Makes a job and returns its id.
    pub(crate) async fn submit(&self, kind: &str, body: &Value) -> Result<String> {
        let url = format!("{}/v1/{kind}", self.url);
        let request = self.client.post(url).header(KEY, API_KEY).json(body);
        let answer: Value = request.send().await?.error_for_status()?.json().await?;
        let id = answer.get("job_id").and_then(Value::as_str);
        Ok(id.context("the simulator took no job")?.to_owned())
    }

    /// Makes that many extract jobs, and returns their ids.
    pub(crate) async fn submit_extracts(&self, count: u32) -> Result<Vec<String>> {
        let submit = |number: u32| async move {
            let url = format!("https://example.com/{number}");
            self.submit("extract", &json!({ "url": url, "processing_mode": "async" })).await
        };
        stream::iter((0..count).map(submit)).buffer_unordered(SUBMISSIONS).try_collect().await
    }

    /// Calls so far by endpoint, without those to the simulator's own ones.
    pub(crate) async fn calls(&self) -> Result<BTreeMap<String, u64>> {
        let counters = self.counters().await?;
        let calls = counters.pointer("/counters/calls").and_then(Value::as_object);
        let calls = calls.context("the simulator counts no calls")?;
        let sum = |statuses: &Value| {
            statuses.as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum()
        };
        let is_platform = |name: &&String| !name.contains(" /sim/");
        let calls = calls.iter().filter(|(name, _)| is_platform(name));
        Ok(calls.map(|(name, statuses)| (name.clone(), sum(statuses))).collect())
    }

    /// Calls so far to one endpoint.
    pub(crate) async fn calls_to(&self, endpoint: &str) -> Result<u64> {
        Ok(self.calls().await?.get(endpoint).copied().unwrap_or_default())
    }

    async fn counters(&self) -> Result<Value> {
        let url = format!("{}/sim/counters", self.url);
        let request = self.client.get(url).header(KEY, API_KEY);
        Ok(request.send().await?.error_for_status()?.json().await?)
    }
}
