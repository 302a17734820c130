//! Tokens (JWT) that drivers send, signed with a key of the run and verified by proxies.
//! They use ES256, one of the two common algorithms. It costs more to verify than RSA, so reports name it.

use crate::Result;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use experiment::environment::{EnvironmentError, ErrorContext};
use jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use std::time::Duration;

pub const ISSUER: &str = "https://tokens.meshmeter.example";
const SUBJECT: &str = "generator";
const KEY_ID: &str = "run";
/// First byte of a curve point given by both coordinates (SEC 1, 2.3.3).
const UNCOMPRESSED: u8 = 4;
/// Length of a coordinate in bytes.
const COORDINATE_BYTES: usize = 32;

#[derive(Debug)]
pub struct TokenIssuer {
    key: EcdsaKeyPair,
    random: SystemRandom,
}

impl TokenIssuer {
    pub fn create() -> Result<Self> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            .map_err(|error| error.to_string())
            .and_then(|document| {
                EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random)
                    .map_err(|error| error.to_string())
            })
            .context("make a key for tokens")?;
        Ok(Self { key, random })
    }

    pub fn public_keys(&self) -> String {
        let point = self.key.public_key().as_ref();
        debug_assert_eq!((point[0], point.len()), (UNCOMPRESSED, 1 + 2 * COORDINATE_BYTES));
        let (x, y) = point[1..].split_at(COORDINATE_BYTES);
        let key = json!({
            "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": KEY_ID,
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        });
        json!({"keys": [key]}).to_string()
    }

    pub fn token(&self, issued_at: Timestamp, valid_for: Duration) -> Result<String> {
        let issued_s = issued_at.as_second();
        let valid_for_s = i64::try_from(valid_for.as_secs()).unwrap_or(i64::MAX);
        let header = json!({"alg": "ES256", "typ": "JWT", "kid": KEY_ID});
        let claims = json!({
            "iss": ISSUER,
            "sub": SUBJECT,
            "iat": issued_s,
            "exp": issued_s.saturating_add(valid_for_s),
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = self
            .key
            .sign(&self.random, signed.as_bytes())
            .map_err(|error| EnvironmentError::new("sign a token", error.to_string()))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    fn decoded(part: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(part).unwrap()
    }

    #[test]
    fn token_is_verified_with_public_key_only() {
        let issuer = TokenIssuer::create().unwrap();
        let keys: Value = serde_json::from_str(&issuer.public_keys()).unwrap();
        let coordinate = |name: &str| decoded(keys["keys"][0][name].as_str().unwrap());
        let point: Vec<u8> = [vec![UNCOMPRESSED], coordinate("x"), coordinate("y")].concat();

        let token = issuer.token(Timestamp::now(), Duration::from_secs(3600)).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        key.verify(signed.as_bytes(), &decoded(signature)).unwrap();
        assert!(key.verify(b"something else", &decoded(signature)).is_err());

        let claims: Value = serde_json::from_slice(&decoded(signed.split_once('.').unwrap().1)).unwrap();
        assert_eq!(claims["iss"], ISSUER);
        assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 3600);
    }
}
