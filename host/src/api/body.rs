//! What an app sends.

use std::error::Error;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{Request, Uri};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use super::json::Unambiguous;
use super::problem::Problem;
use crate::config::{parse_duration, spell_duration};

/// A megabyte is all that a znode can have; in base64 that is a third more.
pub(super) const MOST: usize = 3 << 19;

/// An app on this machine sends a megabyte in some milliseconds.
const LIMIT: Duration = Duration::from_secs(10);

/// The longest duration that an app can ask for. An app that means for ever leaves the duration out.
pub(crate) const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The body as JSON; null if the request has no body.
pub(super) async fn read(request: Request<Body>) -> Result<Value, Problem> {
    let limited = Limited::new(request.into_body(), MOST).collect();
    let body = tokio::time::timeout(LIMIT, limited).await.map_err(|_| Problem::too_slow())?;
    let body: Bytes = match body {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Err(Problem::too_large(MOST)),
        Err(error) => return Err(Problem::bad_request(format!("the body broke off: {error}"))),
    };
    if body.is_empty() {
        return Ok(Value::Null);
    }
    match serde_json::from_slice(&body) {
        Ok(Unambiguous(value)) => Ok(value),
        Err(error) if error.is_data() => Err(Problem::bad_request(format!("the body: {error}"))),
        Err(error) => Err(Problem::bad_request(format!("the body is no JSON: {error}"))),
    }
}

/// The body as a request's own record.
pub(super) async fn read_as<T: DeserializeOwned>(request: Request<Body>) -> Result<T, Problem> {
    from_value(read(request).await?).map_err(Problem::bad_request)
}

fn from_value<T: DeserializeOwned>(body: Value) -> Result<T, String> {
    let body = match body {
        Value::Null => Value::Object(serde_json::Map::new()),
        Value::Object(_) => body,
        _ => return Err("the body is not a JSON object".to_owned()),
    };
    serde_path_to_error::deserialize(body).map_err(|error| {
        match error.path().to_string().as_str() {
            "." => error.inner().to_string(),
            path => format!("`{path}`: {}", error.inner()),
        }
    })
}

/// A duration such as "30s".
pub(super) fn duration(key: &str, text: &str) -> Result<Duration, Problem> {
    let duration = parse_duration(text).map_err(|error| {
        Problem::bad_request(format!("`{key}`: {}: {}", error.message, error.remedy))
    })?;
    match duration {
        Duration::ZERO => Err(Problem::bad_request(format!("`{key}` is nothing: give it time"))),
        _ if duration > LONGEST => Err(Problem::bad_request(format!(
            "`{key}` is more than a week: give at most {:?}",
            spell_duration(LONGEST)
        ))),
        _ => Ok(duration),
    }
}

/// When a caller gives up who has said after how long.
pub(super) fn deadline(timeout: Option<&str>) -> Result<Option<Instant>, Problem> {
    timeout.map(|text| Ok(Instant::now() + duration("timeout", text)?)).transpose()
}

/// What stands behind the question mark of a request.
#[derive(Debug)]
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        asked(&parts.uri).map(Asked).map_err(Problem::bad_request)
    }
}

fn asked<T: DeserializeOwned>(uri: &Uri) -> Result<T, String> {
    let Query(asked) = Query::try_from_uri(uri).map_err(|error| {
        // The source is without the library's own words, which are for its programmers.
        let wrong = error.source().map_or_else(|| error.body_text(), ToString::to_string);
        format!("behind the `?` of the path: {wrong}")
    })?;
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Lease {
        lease: Option<String>,
    }

    fn read_lease(body: Value) -> Result<Option<String>, String> {
        from_value::<Lease>(body).map(|body| body.lease)
    }

    #[test]
    fn a_duration_that_is_too_long_is_told_the_longest() {
        assert!(duration("lease", "168h").is_ok());
        let problem = format!("{:?}", duration("lease", "169h"));
        assert!(problem.contains("`lease` is more than a week: give at most"), "{problem}");
        assert!(problem.contains("168h"), "{problem}");
    }

    #[test]
    fn a_body_is_an_object_and_what_is_wrong_with_a_key_names_the_key() {
        assert_eq!(read_lease(Value::Null), Ok(None));
        assert_eq!(read_lease(json!({ "lease": "5s" })), Ok(Some("5s".to_owned())));
        let wrong = [
            (json!(["5s"]), "the body is not a JSON object"),
            (json!({ "lease": 5 }), "`lease`: invalid type: integer `5`, expected a string"),
            (json!({ "leese": "5s" }), "`leese`: unknown field `leese`, expected `lease`"),
        ];
        for (body, told) in wrong {
            assert_eq!(read_lease(body), Err(told.to_owned()));
        }
    }

    #[test]
    fn what_is_wrong_behind_the_question_mark_is_told_with_its_place() {
        let told = |query: &str| asked::<Lease>(&format!("/v1/x?{query}").parse().unwrap());
        assert_eq!(told("lease=5s").unwrap().lease.as_deref(), Some("5s"));
        for (query, wrong) in [
            ("leese=5s", "leese: unknown field `leese`, expected `lease`"),
            ("lease=5s&lease=6s", "duplicate field `lease`"),
        ] {
            assert_eq!(
                told(query).map(|it| it.lease),
                Err(format!("behind the `?` of the path: {wrong}"))
            );
        }
    }
}
