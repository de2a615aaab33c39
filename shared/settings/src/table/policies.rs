//! What is paid for only where somebody wants it.

use super::{Default, Setting, WORK};
use crate::form::Form;
use crate::role::Role::Worker;

const SWITCH: Form = Form::Word(&["off", "on"]);

pub(super) const POLICIES: &[Setting] = &[
    Setting {
        name: "policies.resubmit_unlinked",
        form: SWITCH,
        default: Default::Value("off"),
        meaning: "Whether jobs that failed retryably are submitted again although they were not \
                  submitted from here, within `limits.resubmits_max` and `limits.spend_per_day`: \
                  jobs created no longer ago than `limits.max_age`, whose answer shows all that \
                  was asked for.",
        if_wrong: "On: failures of everybody who uses the account are paid for again when they \
                   succeed.",
        read_by: WORK.and(&[Worker]),
    },
    Setting {
        name: "policies.resubmit_failed_items",
        form: SWITCH,
        default: Default::Value("off"),
        meaning: "Whether the items of a completed batch or crawl that failed retryably are asked \
                  for once more, in a new batch of the same lineage, within \
                  `limits.resubmits_max` and `limits.spend_per_day`.",
        if_wrong: "On: items are paid for that fail for a lasting reason with a passing code. Off: \
                   failed items are listed in the manifest, and left.",
        read_by: WORK.and(&[Worker]),
    },
];
