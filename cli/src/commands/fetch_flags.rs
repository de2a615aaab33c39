//! The flags that say how a page is fetched.

use clap::{Args, ValueEnum};
use domain::request::{FetchOptions, Format};

/// How pages are fetched.
#[derive(Debug, Clone, Args)]
pub(crate) struct FetchFlags {
    /// Format of the results; may be given twice. Without it the platform chooses.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Vec<FormatFlag>,
    /// Run the pages' scripts.
    #[arg(long)]
    render_js: bool,
    /// Where the proxy stands: two letters, such as DE.
    #[arg(long, value_name = "COUNTRY", value_parser = parse_country)]
    proxy_country: Option<String>,
}

/// A format on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum FormatFlag {
    /// The page as it was served or rendered.
    Html,
    /// The page's content as Markdown.
    Markdown,
}

impl From<FormatFlag> for Format {
    fn from(flag: FormatFlag) -> Self {
        match flag {
            FormatFlag::Html => Self::Html,
            FormatFlag::Markdown => Self::Markdown,
        }
    }
}

impl FetchFlags {
    /// The options in one spelling: formats in order, each once.
    pub(crate) fn options(&self) -> FetchOptions {
        let mut formats: Vec<Format> = self.format.iter().copied().map(Format::from).collect();
        formats.sort_unstable();
        formats.dedup();
        FetchOptions {
            formats,
            render_js: self.render_js,
            proxy_country: self.proxy_country.clone(),
        }
    }
}

fn parse_country(text: &str) -> Result<String, String> {
    if text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        Ok(text.to_ascii_uppercase())
    } else {
        Err("give the two letters of a country, such as DE".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use FormatFlag::{Html, Markdown};

    use super::*;

    #[test]
    fn two_spellings_of_one_wish_are_one_request() {
        let flags = |format: &[FormatFlag], country| FetchFlags {
            format: format.to_vec(),
            render_js: false,
            proxy_country: Some(parse_country(country).unwrap()),
        };
        assert_eq!(
            flags(&[Markdown, Html, Markdown], "de").options(),
            flags(&[Html, Markdown], "DE").options()
        );
        for text in ["", "D", "DEU", "1a", "\u{e4}"] {
            assert!(parse_country(text).is_err(), "{text}");
        }
    }
}
