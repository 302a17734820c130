//! Responds to a registry's challenge with a password, or with a token that its token service issues, with or
//! without credentials.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use reqwest::Url;
use serde::Deserialize;

use super::response::message_of;
use super::{MAX_RETRIES, Sent, Session};
use crate::ImageError;
use crate::credentials::{self, Credentials, Unavailable};
use crate::docker_config::DockerConfig;
use crate::error::one_line;

const MAX_TOKEN_BYTES: u64 = 1 << 20;
const CLIENT_ID: &str = "meshmeter";

enum Challenge {
    Basic,
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl Session<'_> {
    /// Sets the authorization of further requests, according to the challenge of a response with status 401.
    pub(super) fn authenticate(&self, headers: &HeaderMap) -> Result<(), ImageError> {
        let Some(challenge) = challenge(headers) else {
            return Err(self.refused("it requires credentials of a kind that is not supported".to_owned()));
        };
        let authorization = match (challenge, self.credentials()?) {
            (Challenge::Bearer { .. }, Credentials::AccessToken(token)) => format!("Bearer {token}"),
            (Challenge::Bearer { realm, service, scope }, credentials) => {
                let service = service.unwrap_or_default();
                let scope = scope.unwrap_or_else(|| format!("repository:{}:pull", self.image.repository()));
                format!("Bearer {}", self.request_token(&realm, &service, &scope, &credentials)?)
            }
            (Challenge::Basic, Credentials::Password { user, password }) => basic(&user, &password),
            (Challenge::Basic, _) => {
                return Err(self.refused(
                    "it requires a user and a password, and Docker's configuration has none for it (docker login)".to_owned(),
                ));
            }
        };
        let authorization = HeaderValue::from_str(&authorization).ok().map(|mut value| {
            value.set_sensitive(true);
            value
        });
        match authorization {
            Some(value) => *self.authorization.borrow_mut() = Some(value),
            None => return Err(self.invalid("its token has characters that no header can have".to_owned())),
        }
        Ok(())
    }

    /// Credentials from Docker's configuration. A failure to get them is reported only if the registry
    /// requires them.
    fn credentials(&self) -> Result<Credentials, ImageError> {
        let found =
            DockerConfig::read(self.access.docker_config.as_deref()).map_err(Unavailable::Failed).and_then(
                |config| credentials::find(&config, self.image.registry(), &mut || self.look().is_err()),
            );
        match found {
            Ok(credentials) => Ok(credentials),
            Err(Unavailable::Interrupted) => Err(ImageError::Interrupted { image: self.image.to_string() }),
            Err(Unavailable::Failed(reason)) => {
                *self.without_credentials.borrow_mut() = Some(reason);
                Ok(Credentials::Anonymous)
            }
        }
    }

    fn request_token(
        &self,
        realm: &str,
        service: &str,
        scope: &str,
        credentials: &Credentials,
    ) -> Result<String, ImageError> {
        let shown = one_line(realm, 100);
        let url = Url::parse(realm).ok().filter(|url| self.may_request(url));
        let Some(url) = url else {
            return Err(self.invalid(format!("its token service \"{shown}\" is not encrypted")));
        };
        let mut retries = 0;
        loop {
            let response =
                match self.send_request(self.token_request(&url, service, scope, credentials), &url)? {
                    Sent::Response(response) => response,
                    Sent::Broken { reason, .. } => {
                        return Err(self.unreachable(format!("its token service {shown}: {reason}")));
                    }
                };
            let status = response.status();
            if self.waited_to_repeat(&response, retries)? && retries < MAX_RETRIES {
                retries += 1;
                continue;
            }
            if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
                return Err(self.describe_failure(response));
            }
            let body = self.read_body(response, MAX_TOKEN_BYTES, "token")?;
            let body =
                body.map_err(|reason| self.unreachable(format!("its token service {shown}: {reason}")))?;
            if !status.is_success() {
                return Err(self.refused(refusal(status, &body, credentials)));
            }
            let token: Option<Token> = serde_json::from_slice(&body).ok();
            let token = token.and_then(|token| token.token.or(token.access_token));
            return token.ok_or_else(|| self.invalid(format!("its token service {shown} sends no token")));
        }
    }

    fn token_request(
        &self,
        realm: &Url,
        service: &str,
        scope: &str,
        credentials: &Credentials,
    ) -> reqwest::RequestBuilder {
        let mut url = realm.clone();
        match credentials {
            Credentials::IdentityToken(token) => {
                let mut form = Url::parse("form:/").expect("a valid URL");
                form.query_pairs_mut()
                    .append_pair("grant_type", "refresh_token")
                    .append_pair("service", service)
                    .append_pair("scope", scope)
                    .append_pair("client_id", CLIENT_ID)
                    .append_pair("refresh_token", token);
                let form = form.query().unwrap_or_default().to_owned();
                let request =
                    self.http.post(url).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
                request.body(form)
            }
            Credentials::Password { user, password } => {
                url.query_pairs_mut().append_pair("service", service).append_pair("scope", scope);
                self.http.get(url).header(header::AUTHORIZATION, basic(user, password))
            }
            Credentials::Anonymous | Credentials::AccessToken(_) => {
                url.query_pairs_mut().append_pair("service", service).append_pair("scope", scope);
                self.http.get(url)
            }
        }
    }
}

/// Reads `value` like a registry's challenge, and checks that tokens are requested only if it asks for them. For fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_challenge(value: &[u8]) {
    let Ok(header) = HeaderValue::from_bytes(value) else { return };
    let read = challenge(&HeaderMap::from_iter([(header::WWW_AUTHENTICATE, header)]));
    let names = |scheme: &[u8]| value.windows(scheme.len()).any(|part| part.eq_ignore_ascii_case(scheme));
    match read {
        Some(Challenge::Bearer { realm, .. }) => {
            assert!(names(b"bearer") && names(b"realm") && realm.len() <= value.len());
        }
        Some(Challenge::Basic) => assert!(names(b"basic")),
        None => {}
    }
}

fn refusal(status: StatusCode, body: &[u8], credentials: &Credentials) -> String {
    let text = message_of(body);
    let text = if text.is_empty() { status.to_string() } else { format!("{status}: {text}") };
    if *credentials == Credentials::Anonymous {
        format!(
            "it gives no token without credentials, and Docker's configuration has none for it (docker login): {text}"
        )
    } else {
        format!("it does not accept the credentials of Docker's configuration: {text}")
    }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// The challenge to respond to: tokens are preferred to passwords.
fn challenge(headers: &HeaderMap) -> Option<Challenge> {
    let mut has_basic = false;
    for value in headers.get_all(header::WWW_AUTHENTICATE) {
        let Ok(challenges) = http_auth::parse_challenges(value.to_str().ok()?) else { continue };
        for challenge in challenges {
            has_basic |= challenge.scheme.eq_ignore_ascii_case("basic");
            if !challenge.scheme.eq_ignore_ascii_case("bearer") {
                continue;
            }
            let parameter = |name: &str| {
                let mut parameters = challenge.params.iter();
                parameters
                    .find(|(key, _)| key.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value.to_unescaped())
            };
            let realm = parameter("realm")?;
            return Some(Challenge::Bearer {
                realm,
                service: parameter("service"),
                scope: parameter("scope"),
            });
        }
    }
    has_basic.then_some(Challenge::Basic)
}
