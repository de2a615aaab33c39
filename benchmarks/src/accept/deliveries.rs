//! Deliveries, signed before anything is timed.

use anyhow::{Context as _, Result};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The signing secret of all receivers.
pub(super) const SECRET: &str = "whsec_of-the-accept-benchmark";
/// The signature's header, without the digest.
pub(super) const SIGNATURE_HEADER: &str = "x-webhook-signature";
/// Length of a body, in bytes: an event with a small result.
pub(super) const BODY_BYTES: usize = 2_000;
/// Length of a job id, in bytes.
const ID_BYTES: usize = 36;
/// Length of a digest in hex, in bytes.
const DIGEST_BYTES: usize = 64;
/// The body up to the job id.
const BEFORE_ID: &str = concat!(
    r#"{"event":"extract_completed","webhook_id":"0b8e9d0e-4a54-4f0e-9f57-3c3f7f3d8a11","#,
    r#""delivery_id":"395cf7e2-7a1c-4b0e-8d5a-5f1f6f0a2b3c","#,
    r#""timestamp":"2026-03-01T12:00:00Z","data":{"job_id":""#,
);
/// The body between the job id and the result's text.
const BEFORE_TEXT: &str =
    r#"","status":"completed","url":"https://example.com/a/page","result":{"text":""#;
/// The body after the text.
const END: &str = r#""}}}"#;

pub(super) type HmacSha256 = Hmac<Sha256>;

/// The key of [`SECRET`], ready to be cloned.
pub(super) fn keyed() -> Result<HmacSha256> {
    HmacSha256::new_from_slice(SECRET.as_bytes()).context("no key can be made of the secret")
}

/// What distinguishes one delivery from the next: 100 bytes, so that a million fit into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    id: [u8; ID_BYTES],
    digest: [u8; DIGEST_BYTES],
}

/// Signs this many deliveries of different jobs.
pub(super) fn signed(count: usize) -> Result<Vec<Delivery>> {
    let keyed = keyed()?;
    let mut request = Request::new("/webhook")?;
    let mut number = 0_u64;
    let mut deliveries = Vec::with_capacity(count);
    for _ in 0..count {
        let id = job_id(&mut number)?;
        request.put_id(&id)?;
        let mut mac = keyed.clone();
        mac.update(request.body());
        let mut digest = [0; DIGEST_BYTES];
        hex::encode_to_slice(mac.finalize().into_bytes(), &mut digest)?;
        deliveries.push(Delivery { id, digest });
    }
    Ok(deliveries)
}

/// A job id as the platform gives it: a UUID without order, and never the same twice.
fn job_id(number: &mut u64) -> Result<[u8; ID_BYTES]> {
    let mut half = || {
        // SplitMix64, which visits every number once.
        *number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*number ^ (*number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let digits = format!("{:016x}{:016x}", half(), half());
    let mut id = [b'-'; ID_BYTES];
    let places = id.iter_mut().enumerate().filter(|(at, _)| ![8, 13, 18, 23].contains(at));
    places.zip(digits.bytes()).for_each(|((_, place), digit)| *place = digit);
    *id.get_mut(14).context("a short id")? = b'4';
    *id.get_mut(19).context("a short id")? = b'a';
    Ok(id)
}

/// A whole HTTP request, in which id and digest are exchanged from one delivery to the next.
#[derive(Clone, Debug)]
pub(super) struct Request {
    bytes: Vec<u8>,
    digest_at: usize,
    body_at: usize,
    id_at: usize,
}

impl Request {
    /// A request to this path.
    pub(super) fn new(path: &str) -> Result<Self> {
        let nothing = "0".repeat(DIGEST_BYTES);
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: benchmarks\r\n\
             accept: */*\r\ncontent-type: application/json\r\n\
             x-webhook-event: extract_completed\r\ncontent-length: {BODY_BYTES}\r\n\
             {SIGNATURE_HEADER}: sha256={nothing}\r\n\r\n"
        );
        let rest = BEFORE_ID.len() + ID_BYTES + BEFORE_TEXT.len() + END.len();
        let filling = BODY_BYTES.checked_sub(rest).context("the body is too short")?;
        let text: String =
            "All that is gold does not glitter. ".chars().cycle().take(filling).collect();
        let body = format!("{BEFORE_ID}{}{BEFORE_TEXT}{text}{END}", "0".repeat(ID_BYTES));
        Ok(Self {
            digest_at: head.len() - 4 - DIGEST_BYTES,
            body_at: head.len(),
            id_at: head.len() + BEFORE_ID.len(),
            bytes: (head + &body).into_bytes(),
        })
    }

    /// Makes it this delivery, with its signature or with a wrong one.
    pub(super) fn put(&mut self, delivery: &Delivery, genuine: bool) -> Result<&[u8]> {
        self.put_id(&delivery.id)?;
        let at = self.digest_at;
        let digest = self.bytes.get_mut(at..at + DIGEST_BYTES).context("a short request")?;
        digest.copy_from_slice(&delivery.digest);
        if !genuine && let Some(last) = digest.last_mut() {
            *last = if *last == b'0' { b'1' } else { b'0' };
        }
        Ok(&self.bytes)
    }

    fn put_id(&mut self, id: &[u8; ID_BYTES]) -> Result<()> {
        let at = self.id_at;
        self.bytes.get_mut(at..at + ID_BYTES).context("a short request")?.copy_from_slice(id);
        Ok(())
    }

    fn body(&self) -> &[u8] {
        self.bytes.get(self.body_at..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn each_delivery_is_another_job_and_signed() {
        let deliveries = signed(1_000).unwrap();
        let mut request = Request::new("/webhook").unwrap();
        let mut ids = BTreeSet::new();
        for delivery in &deliveries {
            request.put(delivery, true).unwrap();
            let body: Value = serde_json::from_slice(request.body()).unwrap();
            ids.insert(body["data"]["job_id"].as_str().unwrap().to_owned());
            assert_eq!(request.body().len(), BODY_BYTES);
            let mut mac = keyed().unwrap();
            mac.update(request.body());
            let digest = hex::decode(delivery.digest).unwrap();
            mac.verify_slice(&digest).unwrap();
        }
        assert_eq!(ids.len(), deliveries.len());
        assert!(ids.iter().all(|id| id.len() == ID_BYTES && id.matches('-').count() == 4));
    }

    #[test]
    fn a_wrong_signature_differs_in_the_digest_alone() {
        let delivery = signed(1).unwrap()[0];
        let mut request = Request::new("/webhook").unwrap();
        let genuine = request.put(&delivery, true).unwrap().to_vec();
        let wrong = request.put(&delivery, false).unwrap().to_vec();
        assert_eq!(genuine.iter().zip(&wrong).filter(|(a, b)| a != b).count(), 1);
        assert_eq!(request.body(), &genuine[request.body_at..]);
    }
}
