//! Clients of HTTP with the product's one provider of TLS.
//!
//! It is *ring*, for all of the product: with aws-lc the receiver's zip is a quarter of a megabyte
//! larger. AWS's clients name it themselves.

/// What each client of the product begins with.
///
/// Names the provider for the whole process, unless somebody did before: `reqwest` brings none of
/// its own here, and would refuse to make a client.
pub fn client() -> reqwest::ClientBuilder {
    // Taken means named before, by us or by the program: as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    #[expect(clippy::disallowed_methods, reason = "this is where clients begin")]
    reqwest::Client::builder()
}

#[cfg(test)]
mod tests {
    #[test]
    fn clients_are_made_as_often_as_wanted() {
        for _ in 0..2 {
            assert!(super::client().https_only(true).build().is_ok());
        }
    }
}
