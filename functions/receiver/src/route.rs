//! Which request is a delivery.

use http::Method;

/// Where health checks of a load balancer ask.
const HEALTH_PATH: &str = "/healthz";

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// To take a delivery.
    Delivery,
    /// Whether the function runs.
    Health,
    /// Something that is there, by another method than these.
    WrongMethod(&'static str),
    /// Something that is not there.
    Unknown,
}

/// Decides by method and path; the stage of an API may stand before the path or not. Otherwise paths
/// are compared byte for byte, as the embedded receiver does: `/webhook/` and `//webhook` are other
/// paths.
pub(crate) fn route(method: &Method, path: &str, stage: Option<&str>, webhook_path: &str) -> Route {
    let is = |wanted: &str| path == wanted || without_stage(path, stage) == Some(wanted);
    if is(webhook_path) {
        if method == Method::POST { Route::Delivery } else { Route::WrongMethod("POST") }
    } else if is(HEALTH_PATH) {
        match *method {
            Method::GET | Method::HEAD => Route::Health,
            _ => Route::WrongMethod("GET,HEAD"),
        }
    } else {
        Route::Unknown
    }
}

fn without_stage<'p>(path: &'p str, stage: Option<&str>) -> Option<&'p str> {
    path.strip_prefix('/')?.strip_prefix(stage?).filter(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/webhook";

    fn post(path: &str, stage: Option<&str>) -> Route {
        route(&Method::POST, path, stage, PATH)
    }

    /// FD-05: the stage appears in the path or does not.
    #[test]
    fn a_stage_may_stand_before_the_path() {
        assert_eq!(post("/webhook", None), Route::Delivery);
        assert_eq!(post("/webhook", Some("$default")), Route::Delivery);
        assert_eq!(post("/prod/webhook", Some("prod")), Route::Delivery);
        assert_eq!(post("/webhook", Some("prod")), Route::Delivery);
        assert_eq!(route(&Method::POST, "/prod/hook", Some("prod"), "/prod/hook"), Route::Delivery);
        assert_eq!(route(&Method::GET, "/prod/healthz", Some("prod"), PATH), Route::Health);
    }

    #[test]
    fn other_paths_are_unknown() {
        let others =
            ["", "/", "//webhook", "/webhook/", "/Webhook", "/prod/webhook", "/prodwebhook"];
        for path in others {
            assert_eq!(post(path, Some("test")), Route::Unknown, "{path}");
            assert_eq!(post(path, None), Route::Unknown, "{path}");
        }
        assert_eq!(post("/prodwebhook", Some("prod")), Route::Unknown);
        assert_eq!(post("/prod//webhook", Some("prod")), Route::Unknown);
    }

    #[test]
    fn other_methods_are_told_the_right_one() {
        for method in [Method::GET, Method::PUT, Method::OPTIONS, Method::HEAD, Method::DELETE] {
            assert_eq!(route(&method, PATH, None, PATH), Route::WrongMethod("POST"), "{method}");
        }
        assert_eq!(route(&Method::POST, "/healthz", None, PATH), Route::WrongMethod("GET,HEAD"));
        assert_eq!(route(&Method::HEAD, "/healthz", None, PATH), Route::Health);
    }
}
