//! Signature headers: whatever a stranger sends is judged, and only what was signed is accepted.
//!
//! An input is the name of a preset, header lines, an empty line, and the body.

use domain::signature::preset::Preset;
use domain::signature::scheme::Scheme;
use domain::signature::secret::Secret;
use domain::signature::sign::sign;
use domain::signature::verdict::Verdict;
use domain::signature::{Headers, Verifier};
use domain::time::Timestamp;

type Pairs = Vec<(String, Vec<u8>)>;

/// The secrets that make a key under every preset; the first one signed the seeds of the traps.
const SECRETS: [&str; 2] = ["test-secret-1", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"];

pub(crate) fn check(input: &[u8]) {
    let (head, body) = split(input);
    let mut lines = head.split(|byte| *byte == b'\n');
    let preset = preset(lines.next().unwrap_or_default());
    let headers: Pairs = lines.filter_map(header).collect();
    let scheme = preset.scheme().unwrap();
    for secret in SECRETS.map(|text| Secret::new(text).unwrap()) {
        let Ok(verifier) = Verifier::new(scheme.clone(), std::slice::from_ref(&secret)) else {
            continue;
        };
        for now in [now(), Timestamp::MIN, Timestamp::MAX] {
            judge(&verifier, &scheme, &headers, body, now);
        }
        round_trip(&verifier, &scheme, &secret, &headers, body);
    }
}

fn now() -> Timestamp {
    Timestamp::constant(1_796_000_000, 0)
}

/// Head and body; without an empty line there is no body.
fn split(input: &[u8]) -> (&[u8], &[u8]) {
    let at = input.windows(2).position(|pair| pair == b"\n\n").unwrap_or(input.len());
    (&input[..at], input.get(at + 2..).unwrap_or_default())
}

/// The preset of this name; any other name stands for one of them, too.
fn preset(name: &[u8]) -> Preset {
    let named = Preset::ALL.into_iter().find(|preset| preset.name().as_bytes() == name);
    named.unwrap_or_else(|| {
        let place = name.first().copied().map_or(0, usize::from);
        Preset::ALL[place % Preset::ALL.len()]
    })
}

fn header(line: &[u8]) -> Option<(String, Vec<u8>)> {
    let at = line.iter().position(|byte| *byte == b':')?;
    Some((String::from_utf8_lossy(&line[..at]).into_owned(), line[at + 1..].to_vec()))
}

/// A delivery is accepted only if it carries what signing it would have made, apart from the case
/// of hexadecimal digits and the encoding of the digest.
fn judge(verifier: &Verifier, scheme: &Scheme, headers: &Pairs, body: &[u8], now: Timestamp) {
    let diagnostics = verifier.diagnose("test", headers, body);
    assert!(diagnostics.signature_bytes.len() <= 8);
    assert_eq!(diagnostics.body_hash.len(), 12);
    let verdict = verifier.verify(headers, body, now);
    assert_eq!(verdict, verifier.verify(headers, body, now), "the same answer each time");
    let Verdict::Verified(delivery) = verdict else { return };
    if scheme.signs_body() {
        let mut changed = body.to_vec();
        for at in [0, body.len() / 2, body.len().saturating_sub(1)] {
            let Some(byte) = changed.get_mut(at) else { continue };
            *byte ^= 1;
            let verdict = verifier.verify(headers, &changed, now);
            assert!(!matches!(verdict, Verdict::Verified(_)), "byte {at} was changed");
            changed[at] ^= 1;
        }
        changed.push(b' ');
        let verdict = verifier.verify(headers, &changed, now);
        assert!(!matches!(verdict, Verdict::Verified(_)), "a byte was added");
    }
    let has_coding = !headers.values("content-encoding").is_empty();
    assert!(has_coding || delivery.body.as_ref() == body);
}

/// What we sign ourselves verifies, also among the stranger's headers where those leave it
/// standing alone; with another byte in the body or in the digest it does not.
fn round_trip(verifier: &Verifier, scheme: &Scheme, secret: &Secret, strange: &Pairs, body: &[u8]) {
    let Ok(signed) = sign(scheme, secret, body, "msg_1", now()) else { return };
    let signed: Pairs =
        signed.into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
    let verdict = verifier.verify(&signed, body, now());
    let Verdict::Verified(delivery) = verdict else { panic!("{verdict:?}") };
    assert_eq!(delivery.body.as_ref(), body);
    let both: Pairs = signed.iter().chain(strange).cloned().collect();
    let _ = verifier.verify(&both, body, now());
    if !scheme.signs_body() {
        return;
    }
    for at in [0, body.len() / 3, body.len().saturating_sub(1)] {
        let mut changed = body.to_vec();
        let Some(byte) = changed.get_mut(at) else { continue };
        *byte = byte.wrapping_add(1);
        let verdict = verifier.verify(&signed, &changed, now());
        assert!(!matches!(verdict, Verdict::Verified(_)), "byte {at} was changed");
    }
    // The last header is the signature's; its last byte but one belongs to the digest.
    let mut forged = signed;
    let value = &mut forged.last_mut().unwrap().1;
    let at = value.len() - 2;
    value[at] = if value[at] == b'0' { b'1' } else { b'0' };
    let verdict = verifier.verify(&forged, body, now());
    assert!(!matches!(verdict, Verdict::Verified(_)), "the digest was changed");
}

#[test]
fn the_seeds_of_signature_headers_hold() {
    testkit::corpus::check("header", 20, check);
}
