//! Vectors and fixtures of the signature tests.

mod properties;
mod schemes;
mod secrets;
mod traps;

use jiff::Timestamp;

use super::preset::Preset;
use super::scheme::{Scheme, SchemeConfig};
use super::secret::Secret;
use super::verdict::{Reason, Verdict};
use super::{Headers, verify};

pub(super) const SECRET: &str = "test-secret-1";
pub(super) const NOW: i64 = 1_796_000_000;

pub(super) const V1: &[u8] = br#"{"job_id":"j1","event_type":"extract_completed","id":"d1"}"#;
pub(super) const V1_HEX: &str = "ea826bf319909e18b85667f620fe669a612ab8a66c889d24005444e23c54baf7";
pub(super) const V1_OLD_HEX: &str =
    "5cb2f89851bc3f7496c86fa1f33b34f7874fc42946a8a2878eb4f1c3fab59738";
pub(super) const V1_LF_KEY_HEX: &str =
    "9c95bed7f29fabc239025ed29c21e0bfc35b3cc3f8ffd7cc151c4ea0c834f31e";
pub(super) const V2: &[u8] =
    b"{\"job_id\":\"j1\",\"event_type\":\"extract_completed\",\"id\":\"d1\"}\n";
pub(super) const V2_HEX: &str = "3887488b57172d88a8497bed2cb3b15290ee1a388d4335b6882957e6bc61d88d";
pub(super) const V3: &str = "7b0d0a2020226a6f625f6964223a20226a31222c0d0a2020226576656e745f74797065223a2022657874726163745f636f6d706c65746564220d0a7d0d0a";
pub(super) const V3_HEX: &str = "ab678f61a81230f0db6a075541f8b1b2994b739f718ec64edc1211ff328ad0bb";
pub(super) const V4: &[u8] =
    b"{\"job_id\":\"j1\",\"event_type\":\"extract_completed\",\"note\":\"caf\xc3\xa9\"}";
pub(super) const V4_HEX: &str = "16a6aa9159ce70db0c2145e7dfec3a4e0cd48f5789470a4fae12891758dfe530";
pub(super) const V4B: &[u8] =
    br#"{"job_id":"j1","event_type":"extract_completed","note":"caf\u00e9"}"#;
pub(super) const V4B_HEX: &str = "49a926974c986c8b3a1e1492ac70aaf54b7394be2dfc83d27a621fd029e69d67";
pub(super) const V5: &[u8] =
    b"{\"job_id\":\"j1\",\"event_type\":\"extract_completed\",\"note\":\"\xff\"}";
pub(super) const V5_HEX: &str = "03e0dc88d9b12ebfd2fd650dc1ad1c591e0bb4b720b03deea336e053358467b7";
pub(super) const V6_HEX: &str = "d20129e5090a66e64036b8c693678d44994d2cb097357d80e51c2dc19b306739";
pub(super) const V7: &str = "1f8b0800000000000203ab56caca4f8acf4c51b252ca3254d2514a2d4bcd2b892fa92c48058aa4569414252697c427e7e716e4a496a4a600158095a6182ad50200aeee659b3a000000";
pub(super) const V7_HEX: &str = "bf763499d2e0cd2d68e63dfc910c57ff91d69679b07c5eedaa2abc828369a04f";
pub(super) const V8_HEX: &str = "1b8b88da911b646e8e40df85073ff0e6e3b3b82d725da699b4480eb2bd466a7b";

pub(super) type Pairs = Vec<(String, Vec<u8>)>;

pub(super) fn pairs(list: &[(&str, &[u8])]) -> Pairs {
    list.iter().map(|(name, value)| ((*name).to_owned(), value.to_vec())).collect()
}

pub(super) fn signed(value: impl AsRef<[u8]>) -> Pairs {
    pairs(&[("X-Webhook-Signature", value.as_ref())])
}

pub(super) fn preset(preset: Preset) -> Scheme {
    preset.scheme().unwrap()
}

pub(super) fn scheme(json: &str) -> Scheme {
    Scheme::try_from(serde_json::from_str::<SchemeConfig>(json).unwrap()).unwrap()
}

pub(super) fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

pub(super) fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

pub(super) fn check<'b>(scheme: &Scheme, headers: &dyn Headers, body: &'b [u8]) -> Verdict<'b> {
    verify(scheme, headers, body, &[secret(SECRET)], now())
}

/// The reason of a rejection; `None` if the delivery was verified.
pub(super) fn reason(scheme: &Scheme, headers: &dyn Headers, body: &[u8]) -> Option<Reason> {
    match check(scheme, headers, body) {
        Verdict::Verified(_) => None,
        Verdict::Rejected(reason) => Some(reason),
        Verdict::Unconfigured(unconfigured) => panic!("{unconfigured}"),
    }
}
