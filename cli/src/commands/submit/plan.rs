//! From a list of URLs to submissions.

use std::collections::BTreeSet;

use domain::intent::Submission;
use domain::limits::{BATCH_BYTES_MAX, BATCH_URLS_MAX};
use domain::request::{FetchOptions, JobRequest, RequestError, batch_bytes};
use sha2::{Digest as _, Sha256};

use crate::input::Line;

/// What the list is turned into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One extract job per URL.
    Extract,
    /// Batches of as many URLs as one may hold.
    Batch,
    /// One crawl per URL.
    Crawl {
        /// Levels, 1 = the seed only.
        depth: u32,
        /// Most pages of each.
        limit: u32,
    },
}

/// The submissions of one run, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The run's name.
    pub(super) run: String,
    /// The submissions; positions count from 0.
    pub(super) submissions: Vec<Submission>,
    /// URLs that occur again, each of which is submitted again.
    pub(super) repeated: usize,
}

/// Why there is no plan.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PlanError {
    /// A request cannot be made.
    #[error("{0}")]
    Request(RequestError),
    /// A ref of a URL that shares its job with others.
    #[error("a batch has one ref, and the list gives refs to single URLs")]
    RefsInBatch,
    /// One ref for several submissions.
    #[error("`--ref` names one submission, and these are {submissions}")]
    OneRef {
        /// How many there are.
        submissions: usize,
    },
}

impl PlanError {
    /// What to do about it.
    pub(super) const fn hint(&self) -> &'static str {
        match self {
            Self::Request(_) => "see `gleaner submit --help` for what is allowed",
            Self::RefsInBatch => {
                "remove the refs from the list, or give the one batch a ref with --ref"
            }
            Self::OneRef { .. } => "give refs in the list's second column, after a tab",
        }
    }
}

/// Makes the submissions. Without a name the run is named after what is asked for, so that the
/// same list with the same options is the same run.
///
/// # Errors
/// See [`PlanError`].
pub(super) fn plan(
    lines: &[Line],
    shape: Shape,
    options: &FetchOptions,
    run: Option<String>,
    reference: Option<&str>,
) -> Result<Plan, PlanError> {
    let mut requests = requests(lines, shape, options)?;
    if let Some(reference) = reference {
        let submissions = requests.len();
        let [(_, only)] = requests.as_mut_slice() else {
            return Err(PlanError::OneRef { submissions });
        };
        *only = Some(reference.to_owned());
    }
    let run = run.unwrap_or_else(|| derived_name(&requests));
    let submission = |(position, (request, reference))| Submission {
        run: run.clone(),
        position,
        request,
        reference,
    };
    let submissions = (0..).zip(requests).map(submission).collect();
    let distinct: BTreeSet<_> = lines.iter().map(|line| &line.url).collect();
    Ok(Plan { run, submissions, repeated: lines.len() - distinct.len() })
}

type Wanted = (JobRequest, Option<String>);

fn requests(
    lines: &[Line],
    shape: Shape,
    options: &FetchOptions,
) -> Result<Vec<Wanted>, PlanError> {
    let single = |line: &Line| {
        let request = match shape {
            Shape::Crawl { depth, limit } => {
                JobRequest::crawl(&line.url, options.clone(), depth, limit)
            }
            Shape::Extract | Shape::Batch => JobRequest::extract(&line.url, options.clone()),
        };
        request.map(|request| (request, line.reference.clone())).map_err(PlanError::Request)
    };
    if shape != Shape::Batch {
        return lines.iter().map(single).collect();
    }
    if lines.iter().any(|line| line.reference.is_some()) {
        return Err(PlanError::RefsInBatch);
    }
    let batch = |chunk: &[Line]| {
        let urls = chunk.iter().map(|line| line.url.as_str());
        JobRequest::batch(urls, options.clone())
            .map(|request| (request, None))
            .map_err(PlanError::Request)
    };
    batches(lines).into_iter().map(batch).collect()
}

/// The list cut into batches, each with as many URLs as fit.
fn batches(lines: &[Line]) -> Vec<&[Line]> {
    let mut batches = Vec::new();
    let (mut begin, mut bytes) = (0, 0_usize);
    for (at, line) in lines.iter().enumerate() {
        let more = batch_bytes(&line.url);
        let is_full = at - begin >= BATCH_URLS_MAX || bytes.saturating_add(more) > BATCH_BYTES_MAX;
        if is_full && at > begin {
            batches.extend(lines.get(begin..at));
            (begin, bytes) = (at, 0);
        }
        bytes = bytes.saturating_add(more);
    }
    batches.extend(lines.get(begin..).filter(|rest| !rest.is_empty()));
    batches
}

/// A name made of 64 bits of a hash, enough to keep a person's runs apart.
fn derived_name(requests: &[Wanted]) -> String {
    let mut hasher = Sha256::new();
    for (request, reference) in requests {
        hasher.update(request.hash());
        let reference = reference.as_deref().unwrap_or_default();
        let length = u64::try_from(reference.len()).unwrap_or(u64::MAX);
        hasher.update(length.to_be_bytes());
        hasher.update(reference);
    }
    let digest = hasher.finalize();
    let head = digest.first_chunk::<8>().copied().unwrap_or_default();
    format!("run-{:016x}", u64::from_be_bytes(head))
}

#[cfg(test)]
mod tests {
    use domain::request::Format;

    use super::*;

    fn lines(count: usize) -> Vec<Line> {
        let line = |number| Line { url: format!("https://example.com/{number}"), reference: None };
        (0..count).map(line).collect()
    }

    fn with(lines: &[Line], shape: Shape, options: &FetchOptions) -> Result<Plan, PlanError> {
        plan(lines, shape, options, None, None)
    }

    #[test]
    fn the_same_list_with_the_same_options_is_the_same_run() {
        let options = FetchOptions::default();
        let html = FetchOptions { formats: vec![Format::Html], ..FetchOptions::default() };
        let crawl = Shape::Crawl { depth: 2, limit: 50 };
        let first = with(&lines(3), Shape::Extract, &options).unwrap();
        insta::assert_snapshot!(first.run, @"run-39b468c3f689ed29");
        assert_eq!(with(&lines(3), Shape::Extract, &options).unwrap(), first);
        let mut with_ref = lines(3);
        with_ref[0].reference = Some("a".to_owned());
        let others = [
            with(&lines(4), Shape::Extract, &options),
            with(&lines(3), Shape::Extract, &html),
            with(&lines(3), Shape::Batch, &options),
            with(&lines(3), crawl, &options),
            with(&with_ref, Shape::Extract, &options),
        ];
        for other in others {
            assert_ne!(other.unwrap().run, first.run);
        }
    }

    #[test]
    fn batches_hold_up_to_a_thousand_urls_in_order() {
        let plan = with(&lines(2_001), Shape::Batch, &FetchOptions::default()).unwrap();
        let sizes: Vec<_> =
            plan.submissions.iter().map(|submission| submission.request.tokens_max()).collect();
        assert_eq!(sizes, [1_000, 1_000, 1]);
        assert_eq!(plan.submissions[2].position, 2);
    }

    #[test]
    fn batches_of_long_urls_hold_fewer() {
        let long = |number| Line {
            url: format!("https://example.com/{}{number}", "a".repeat(450)),
            reference: None,
        };
        let mut mixed: Vec<_> = (10_000..11_000).map(long).collect();
        mixed.extend(lines(2_000));
        let plan = with(&mixed, Shape::Batch, &FetchOptions::default()).unwrap();
        let sizes: Vec<_> =
            plan.submissions.iter().map(|submission| submission.request.tokens_max()).collect();
        assert_eq!(sizes, [548, 1_000, 1_000, 452]);
        let urls = plan.submissions.iter().flat_map(|submission| match &submission.request {
            JobRequest::Batch { urls, .. } => urls.clone(),
            other => panic!("{other:?}"),
        });
        assert!(urls.eq(mixed.iter().map(|line| line.url.clone())), "all of them, in order");
        // One that no batch may hold is named as such, and not lost in an endless cut.
        let mut endless = lines(1);
        endless.insert(0, Line { url: "a".repeat(BATCH_BYTES_MAX), reference: None });
        let error = with(&endless, Shape::Batch, &FetchOptions::default()).unwrap_err();
        let bytes = BATCH_BYTES_MAX;
        assert_eq!(error, PlanError::Request(RequestError::UrlTooLong { bytes }));
    }

    #[test]
    fn repeated_urls_are_counted_and_kept() {
        let mut twice = lines(2);
        twice.extend(lines(2));
        let plan = with(&twice, Shape::Extract, &FetchOptions::default()).unwrap();
        assert_eq!((plan.repeated, plan.submissions.len()), (2, 4));
    }

    #[test]
    fn a_ref_belongs_to_one_submission() {
        let options = FetchOptions::default();
        let named = |lines: &[Line], shape| plan(lines, shape, &options, None, Some("r"));
        let one = named(&lines(1), Shape::Extract).unwrap();
        assert_eq!(one.submissions[0].reference.as_deref(), Some("r"));
        assert!(named(&lines(5), Shape::Batch).is_ok());
        let several = named(&lines(2), Shape::Extract);
        assert_eq!(several, Err(PlanError::OneRef { submissions: 2 }));
        let mut with_ref = lines(2);
        with_ref[1].reference = Some("a".to_owned());
        assert_eq!(with(&with_ref, Shape::Batch, &options), Err(PlanError::RefsInBatch));
    }
}
