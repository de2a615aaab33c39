//! The catalogue as a table for docs/logging.md.

use std::fmt::Write as _;

use settings::Role;

use crate::catalogue::{Dimensions, Metric, Unit, Zero, all};

/// The table of all metrics.
pub fn markdown() -> String {
    let mut page =
        "| metric | kind | unit | functions | dimensions on AWS | zero is told | meaning |\n\
                    |---|---|---|---|---|---|---|\n"
            .to_owned();
    for (kind, metric) in all() {
        // Writing to a text does not fail.
        let _ = writeln!(
            page,
            "| `{}` | {kind} | {} | {} | {} | {} | {} |",
            metric.name,
            unit(metric.unit),
            functions(metric),
            dimensions(metric),
            if metric.zero == Zero::Told { "yes" } else { "no" },
            metric.meaning,
        );
    }
    page
}

const fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Seconds => "seconds",
        Unit::None => "none",
    }
}

fn functions(metric: &Metric) -> String {
    match metric.functions {
        [] => "none".to_owned(),
        functions => {
            functions.iter().map(|role| Role::as_str(*role)).collect::<Vec<_>>().join(", ")
        }
    }
}

fn dimensions(metric: &Metric) -> &'static str {
    match (metric.functions, metric.dimensions) {
        ([], _) => "none",
        (_, Dimensions::Stack) => "`stack`",
        (_, Dimensions::StackAndRole) => "`stack`, `role`",
    }
}
