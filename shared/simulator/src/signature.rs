//! The signature of a delivery.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::config::SignatureEncoding;

/// Signs a body with HMAC-SHA256; the whole secret string is the key.
pub(crate) fn sign(encoding: SignatureEncoding, secret: &[u8], body: &[u8]) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else {
        // Unreachable: HMAC takes keys of any length. No signature is a refused delivery.
        return String::new();
    };
    mac.update(body);
    let digest = mac.finalize().into_bytes();
    match encoding {
        SignatureEncoding::Sha256Hex => format!("sha256={}", hex::encode(digest)),
        SignatureEncoding::Hex => hex::encode(digest),
        SignatureEncoding::Base64 => STANDARD.encode(digest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key, text and digest are the well-known example of the HMAC article on Wikipedia.
    #[test]
    fn every_encoding_carries_the_same_digest() {
        let digest = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";
        let text = b"The quick brown fox jumps over the lazy dog";
        let cases = [
            (SignatureEncoding::Sha256Hex, format!("sha256={digest}")),
            (SignatureEncoding::Hex, digest.to_owned()),
            (SignatureEncoding::Base64, "97yD9DBThCSxMpjmqm+xQ+9NWaFJRhdZl0edvC0aPNg=".to_owned()),
        ];
        for (encoding, expected) in cases {
            assert_eq!(sign(encoding, b"key", text), expected);
        }
    }
}
