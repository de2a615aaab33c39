//! What a figure must be, and whether it is.

/// One goal: a value, and what it must be.
pub(crate) struct Goal {
    what: String,
    value: f64,
    wanted: f64,
    at_most: bool,
    unit: &'static str,
}

impl Goal {
    pub(crate) fn at_least(what: String, value: f64, wanted: f64, unit: &'static str) -> Self {
        Self { what, value, wanted, at_most: false, unit }
    }

    pub(crate) fn at_most(what: String, value: f64, wanted: f64, unit: &'static str) -> Self {
        Self { what, value, wanted, at_most: true, unit }
    }

    /// A line of the report.
    pub(crate) fn line(&self) -> String {
        let met = if self.at_most { self.value <= self.wanted } else { self.value >= self.wanted };
        format!(
            "- {} {}: {:.1}{unit}, wanted {} {:.0}{unit}",
            if met { "met" } else { "MISSED" },
            self.what,
            self.value,
            if self.at_most { "at most" } else { "at least" },
            self.wanted,
            unit = self.unit,
        )
    }
}
