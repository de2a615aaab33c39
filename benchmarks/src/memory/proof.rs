//! Whether a crawl's result is right: one manifest, its parts as it says, every page once.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::site::files;

/// What was found to be right.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Proof {
    pub(crate) items: u64,
    bytes: u64,
}

impl Proof {
    pub(crate) const fn and(self, other: Self) -> Self {
        Self { items: self.items + other.items, bytes: self.bytes + other.bytes }
    }

    #[expect(clippy::cast_precision_loss, reason = "far less than 2^52 bytes")]
    pub(crate) fn megabytes(self) -> f64 {
        self.bytes as f64 / 1e6
    }
}

/// Checks one crawl's manifest and parts.
pub(crate) fn of_crawl(results: &Path, job_id: &str, pages: u32) -> Result<Proof> {
    let manifests = files(results, &format!("{job_id}/_manifest.json"));
    let [manifest] = manifests.as_slice() else {
        anyhow::bail!("{} manifests instead of one", manifests.len())
    };
    let manifest: Value = serde_json::from_slice(&std::fs::read(manifest)?)?;
    ensure!(manifest.get("items") == Some(&pages.into()), "the manifest counts other items");
    let parts = manifest.get("parts").and_then(Value::as_array).context("no parts")?;
    let mut urls = BTreeSet::new();
    let mut bytes = 0;
    for part in parts {
        let text = |name: &str| part.get(name).and_then(Value::as_str).context("not a part");
        let stored = std::fs::read(results.join(text("key")?))?;
        ensure!(hex::encode(Sha256::digest(&stored)) == text("sha256")?, "a part was changed");
        let mut lines = String::new();
        MultiGzDecoder::new(stored.as_slice()).read_to_string(&mut lines)?;
        bytes += u64::try_from(lines.len())?;
        for line in lines.lines() {
            let item: Value = serde_json::from_str(line)?;
            let url = item.get("item_key").and_then(Value::as_str).context("no item")?;
            ensure!(urls.insert(url.to_owned()), "{url} is there twice");
        }
    }
    ensure!(urls.len() == usize::try_from(pages)?, "{} of {pages} pages", urls.len());
    Ok(Proof { items: u64::from(pages), bytes })
}
