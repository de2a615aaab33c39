//! What an HTTP status other than 2xx means: for the caller, and for a paid POST.

use domain::ports::ApiErrorKind;

/// Whether a call that went wrong can have had an effect at the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The platform did nothing.
    None,
    /// It may have done what it was asked.
    Possible,
}

/// What to do about a status that is not 2xx.
pub(crate) const fn kind_of(status: u16) -> ApiErrorKind {
    match status {
        401 | 403 => ApiErrorKind::Denied,
        402 => ApiErrorKind::PaymentRequired,
        404 | 410 => ApiErrorKind::Missing,
        408 | 425 | 500..=599 => ApiErrorKind::Unavailable,
        429 => ApiErrorKind::Throttled,
        // A redirect is never followed: the base URL is wrong and stays so.
        300..=499 => ApiErrorKind::Refused,
        _ => ApiErrorKind::Unreadable,
    }
}

/// Whether a POST that was answered with this status may have been taken all the same.
///
/// 503 and 4xx say that it was not. 408 is a time-out on the other side, 303 points at what a POST
/// made, and other 5xx come from whoever lost sight of the request: none of them says.
pub(crate) const fn effect_of(status: u16) -> Effect {
    match status {
        303 | 408 => Effect::Possible,
        300..=499 | 503 => Effect::None,
        _ => Effect::Possible,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WK-12: the classes of status codes, as a table.
    #[test]
    fn statuses_have_classes() {
        use ApiErrorKind as Kind;
        for (status, kind, effect) in [
            (100, Kind::Unreadable, Effect::Possible),
            (301, Kind::Refused, Effect::None),
            (303, Kind::Refused, Effect::Possible),
            (308, Kind::Refused, Effect::None),
            (400, Kind::Refused, Effect::None),
            (401, Kind::Denied, Effect::None),
            (402, Kind::PaymentRequired, Effect::None),
            (403, Kind::Denied, Effect::None),
            (404, Kind::Missing, Effect::None),
            (405, Kind::Refused, Effect::None),
            (408, Kind::Unavailable, Effect::Possible),
            (409, Kind::Refused, Effect::None),
            (410, Kind::Missing, Effect::None),
            (413, Kind::Refused, Effect::None),
            (422, Kind::Refused, Effect::None),
            (425, Kind::Unavailable, Effect::None),
            (429, Kind::Throttled, Effect::None),
            (500, Kind::Unavailable, Effect::Possible),
            (502, Kind::Unavailable, Effect::Possible),
            (503, Kind::Unavailable, Effect::None),
            (504, Kind::Unavailable, Effect::Possible),
            (524, Kind::Unavailable, Effect::Possible),
        ] {
            assert_eq!((kind_of(status), effect_of(status)), (kind, effect), "{status}");
        }
    }
}
