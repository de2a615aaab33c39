//! Results: generated from a key each time they are asked for, or served from real files.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use crate::dice::{Dice, Key, mix};
use crate::error::SimulatorError;
use crate::fate::Rules;
use crate::job::Format;

/// Largest file taken into a corpus, in bytes.
const CORPUS_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Largest corpus held in memory, in bytes.
const CORPUS_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Real documents that are served as results, sorted by file name.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    html: Vec<Document>,
    markdown: Vec<Document>,
}

#[derive(Clone, Debug)]
struct Document {
    name: Arc<str>,
    text: Arc<str>,
}

impl Corpus {
    /// Reads all `.html` and `.md` files of a folder.
    ///
    /// # Errors
    ///
    /// Fails when the folder or a file cannot be read, a file is not UTF-8 or too large, or the
    /// folder holds no such file.
    pub fn load(folder: &Path) -> Result<Self, SimulatorError> {
        let broken = |path: &Path| {
            let path = path.to_owned();
            move |source| SimulatorError::Corpus { path, source }
        };
        let mut corpus = Self::default();
        let mut total = 0;
        for entry in std::fs::read_dir(folder).map_err(broken(folder))? {
            let path = entry.map_err(broken(folder))?.path();
            let list = match path.extension().and_then(|extension| extension.to_str()) {
                Some("html") => &mut corpus.html,
                Some("md") => &mut corpus.markdown,
                _ => continue,
            };
            let size = std::fs::metadata(&path).map_err(broken(&path))?.len();
            total += size;
            if size > CORPUS_FILE_BYTES_MAX || total > CORPUS_BYTES_MAX {
                return Err(SimulatorError::CorpusTooLarge { path });
            }
            let text = std::fs::read_to_string(&path).map_err(broken(&path))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            list.push(Document { name: name.as_ref().into(), text: text.into() });
        }
        if corpus.html.is_empty() && corpus.markdown.is_empty() {
            return Err(SimulatorError::CorpusEmpty { path: folder.to_owned() });
        }
        corpus.html.sort_by(|a, b| a.name.cmp(&b.name));
        corpus.markdown.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(corpus)
    }

    /// Chooses the document for a URL; a format without files of its own borrows the other's.
    fn choose(&self, format: Format, url: &str) -> Option<&Document> {
        let list = match format {
            Format::Html if !self.html.is_empty() => &self.html,
            Format::Markdown if self.markdown.is_empty() => &self.html,
            Format::Html | Format::Markdown => &self.markdown,
        };
        // The choice depends on the URL alone, so that a resubmitted URL shows the same page.
        list.get(Dice::new(0).index("document", Key::of(url.as_bytes()), list.len()))
    }

    /// Names the file that is served for a URL.
    pub(crate) fn file_name(&self, format: Format, url: &str) -> Option<&str> {
        self.choose(format, url).map(|document| document.name.as_ref())
    }
}

/// Makes the text of one result.
pub(crate) fn result_text(
    corpus: &Corpus,
    rules: &Rules,
    key: Key,
    url: &str,
    format: Format,
) -> String {
    if let Some(document) = corpus.choose(format, url) {
        return document.text.as_ref().to_owned();
    }
    let bytes = if rules.dice.happens("huge", key, rules.faults.huge_results) {
        f64::from(rules.faults.huge_bytes)
    } else {
        f64::from(rules.result_bytes) * (0.5 + rules.dice.unit("size", key))
    };
    generate(rules.dice.bits("text", key), url, format, bytes)
}

const WORDS: [&str; 32] = [
    "archive", "bridge", "canal", "delta", "ember", "field", "garden", "harbour", "island",
    "jetty", "kiosk", "lantern", "meadow", "north", "orchard", "parcel", "quarry", "river",
    "signal", "timber", "umbrella", "valley", "window", "yard", "zinc", "über", "naïve", "日本",
    "crème", "and", "the", "of",
];

/// Writes paragraphs of words until `bytes` are reached.
fn generate(mut state: u64, url: &str, format: Format, bytes: f64) -> String {
    let mut text = String::new();
    let title = match format {
        Format::Html => {
            "<!doctype html>\n<html><head><meta charset=\"utf-8\"><title>Page</title></head><body>\n<h1>"
        }
        Format::Markdown => "# ",
    };
    text.push_str(title);
    let address = url.replace('&', "&amp;").replace('<', "&lt;");
    let _ = match format {
        Format::Html => write!(text, "{address}</h1>\n<p>"),
        Format::Markdown => write!(text, "{url}\n\n"),
    };
    while f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX)) < bytes {
        state = mix(state);
        let mut bits = state;
        for _ in 0..WORDS_PER_DRAW {
            let index = usize::try_from(bits & 31).unwrap_or(0);
            text.push_str(WORDS.get(index).copied().unwrap_or("word"));
            text.push(' ');
            bits >>= 5;
        }
        if state.is_multiple_of(8) {
            text.push_str(match format {
                Format::Html => "</p>\n<p>",
                Format::Markdown => "\n\n",
            });
        }
    }
    if format == Format::Html {
        text.push_str("</p>\n</body></html>\n");
    }
    text
}

/// Five bits choose a word; 64 bits hold twelve of them.
const WORDS_PER_DRAW: u32 = 12;
