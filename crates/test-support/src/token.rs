//! A token service as registries use it: it checks a password and signs tokens that the registry accepts.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use rustls::ServerConfig;
use serde_json::json;

use crate::server::{Request, Response, Server};
use crate::{PASSWORD, USER};

pub(crate) const ISSUER: &str = "test-registry";
pub(crate) const SERVICE: &str = "registry.test";
/// Identity token that replaces the password for clients that have it from an earlier login.
pub(crate) const IDENTITY_TOKEN: &str = "identity-of-the-user";
const VALIDITY_S: i64 = 300;

pub(crate) struct TokenService {
    pub(crate) server: Server,
    /// Certificate with which the registry verifies the signatures, PEM.
    pub(crate) certificate: String,
}

impl TokenService {
    pub(crate) fn start(tls: Option<Arc<ServerConfig>>) -> Self {
        let key = KeyPair::generate().expect("a P-256 key");
        let mut parameters = CertificateParams::new(vec![ISSUER.to_owned()]).expect("a name");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key).expect("a certificate");
        let random = SystemRandom::new();
        let signer =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key.serialize_der(), &random)
                .expect("the key that was just made");
        let chain = STANDARD.encode(certificate.der());
        let server = Server::start(tls, move |request| {
            if !is_known(request) {
                let error =
                    json!({"errors": [{"code": "UNAUTHORIZED", "message": "wrong user or password"}]});
                return Response::new(401, error.to_string());
            }
            let token = sign(&signer, &random, &chain, &scope(request));
            Response::new(200, json!({"token": token, "expires_in": VALIDITY_S}).to_string())
        });
        Self { server, certificate: certificate.pem() }
    }
}

/// True if the request has the password, or the identity token in a form.
fn is_known(request: &Request) -> bool {
    let expected = format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")));
    let form = String::from_utf8_lossy(&request.body);
    request.header("authorization") == Some(&expected)
        || (form.contains("grant_type=refresh_token")
            && form.contains(&format!("refresh_token={IDENTITY_TOKEN}")))
}

/// Repository of the requested scope, from the query or form.
fn scope(request: &Request) -> String {
    let parameters =
        format!("{}&{}", request.target.replace('?', "&"), String::from_utf8_lossy(&request.body));
    let scope = parameters.split('&').find_map(|pair| pair.strip_prefix("scope=")).unwrap_or_default();
    let scope = scope.replace("%3A", ":").replace("%2F", "/");
    scope.split(':').nth(1).unwrap_or_default().to_owned()
}

fn sign(signer: &EcdsaKeyPair, random: &SystemRandom, chain: &str, repository: &str) -> String {
    let now = jiff::Timestamp::now().as_second();
    let header = json!({"typ": "JWT", "alg": "ES256", "x5c": [chain]});
    let claims = json!({
        "iss": ISSUER, "sub": USER, "aud": SERVICE, "jti": "1",
        "iat": now, "nbf": now - 10, "exp": now + VALIDITY_S,
        "access": [{"type": "repository", "name": repository, "actions": ["pull"]}],
    });
    let encode = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", encode(&header), encode(&claims));
    let signature = signer.sign(random, message.as_bytes()).expect("a signature");
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
}
