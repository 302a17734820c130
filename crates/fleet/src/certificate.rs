//! Certificates from a control plane's own authority: `istio.v1.auth.IstioCertificateService/CreateCertificate`, as Istio's
//! agent requests them.

use crate::transport::{Deframer, Ending, EndingKind, Event, Link, Piece, RequestHead, Route, frame_message};
use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256, SanType};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Context, Poll};

const PATH: &str = "/istio.v1.auth.IstioCertificateService/CreateCertificate";
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// Validity that Istio's agent requests: one day.
const VALIDITY_S: u64 = 24 * 3600;

/// Requester of a certificate.
pub(crate) struct Applicant<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) service_account: &'a str,
    pub(crate) cluster_id: &'a str,
    pub(crate) token: &'a str,
}

/// A certificate with its key.
pub(crate) struct Identity {
    /// Certificate chain without the root.
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// Generates a key and has it signed.
pub(crate) async fn request_certificate(
    route: &Route<'_>,
    authority: &str,
    applicant: &Applicant<'_>,
    buffer: &RefCell<Vec<u8>>,
) -> Result<Identity, Ending> {
    let refused = |error: rcgen::Error| Ending::new(EndingKind::CertificateRefused, error.to_string());
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(refused)?;
    let request = signing_request(applicant, &key).map_err(refused)?;
    let mut link = Link::connect(route).await?;
    link.open_stream(&RequestHead {
        scheme: "https",
        authority,
        path: PATH,
        token: Some(applicant.token),
        cluster_id: applicant.cluster_id,
    });
    let mut message = Vec::new();
    frame_message(&encode_request(&request), &mut message);
    link.send(&message)?;
    link.finish();
    let (mut deframer, mut response) = (Deframer::default(), None);
    let ending =
        poll_fn(|context| poll_response(&mut link, context, buffer, &mut deframer, &mut response)).await;
    match (ending.kind, response) {
        (EndingKind::StreamEnded, Some(response)) => Ok(Identity {
            chain: decode_chain(&response)?,
            key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        }),
        (EndingKind::Status(_) | EndingKind::StreamEnded, _) => {
            Err(Ending::new(EndingKind::CertificateRefused, ending.detail))
        }
        _ => Err(ending),
    }
}

fn poll_response(
    link: &mut Link,
    context: &mut Context<'_>,
    buffer: &RefCell<Vec<u8>>,
    deframer: &mut Deframer,
    response: &mut Option<Vec<u8>>,
) -> Poll<Ending> {
    loop {
        if let Poll::Ready(Err(ending)) = link.poll_send(context) {
            return Poll::Ready(ending);
        }
        let received = link.poll_receive(context, &mut buffer.borrow_mut(), &mut |event, _| match event {
            Event::Data(bytes) => deframer.receive(bytes, MAX_RESPONSE_BYTES, |piece| {
                match piece {
                    Piece::Start(length) => *response = Some(Vec::with_capacity(length)),
                    Piece::Body(bytes) => response.get_or_insert_default().extend_from_slice(bytes),
                    Piece::End => {}
                }
                Ok(())
            }),
            Event::Ready | Event::Pong => Ok(()),
        });
        match received {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(ending)) => return Poll::Ready(ending),
            Poll::Pending => return Poll::Pending,
        }
    }
}

/// The name in the CSR is only a wish: the authority signs the identity in the token.
fn signing_request(applicant: &Applicant<'_>, key: &KeyPair) -> Result<String, rcgen::Error> {
    let name = format!("spiffe://cluster.local/ns/{}/sa/{}", applicant.namespace, applicant.service_account);
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.subject_alt_names = vec![SanType::URI(name.try_into()?)];
    parameters.serialize_request(key)?.pem()
}

/// `IstioCertificateRequest`: `csr` 1, `validity_duration` 3.
fn encode_request(signing_request: &str) -> Vec<u8> {
    let mut message = vec![0x0a];
    put_varint(signing_request.len() as u64, &mut message);
    message.extend_from_slice(signing_request.as_bytes());
    message.push(0x18);
    put_varint(VALIDITY_S, &mut message);
    message
}

/// `IstioCertificateResponse`: `cert_chain` 1, PEM texts from the leaf to the root.
fn decode_chain(mut message: &[u8]) -> Result<Vec<CertificateDer<'static>>, Ending> {
    let refused = |detail: &str| Ending::new(EndingKind::CertificateRefused, detail);
    let mut pem = Vec::new();
    while let Some((tag, rest)) = message.split_first() {
        message = rest;
        let length = take_varint(&mut message).ok_or_else(|| refused("the response cannot be decoded"))?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (text, rest) =
            message.split_at_checked(length).ok_or_else(|| refused("the response cannot be decoded"))?;
        message = rest;
        if *tag == 0x0a {
            pem.extend_from_slice(text);
            pem.push(b'\n');
        }
    }
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let mut chain = chain.map_err(|error| refused(&format!("read the certificate: {error}")))?;
    if chain.is_empty() {
        return Err(refused("the response has no certificate"));
    }
    if chain.len() > 1 {
        chain.pop();
    }
    Ok(chain)
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 128 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 127) << shift;
        if byte & 128 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chain_is_read_without_root() {
        let pem = |name: &str| rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap().cert;
        let (leaf, root) = (pem("leaf"), pem("root"));
        let mut message = Vec::new();
        for certificate in [&leaf, &root] {
            message.push(0x0a);
            put_varint(certificate.pem().len() as u64, &mut message);
            message.extend_from_slice(certificate.pem().as_bytes());
        }
        assert_eq!(decode_chain(&message).unwrap(), [leaf.der().clone()]);
    }

    #[test]
    fn invalid_response_is_refused() {
        for message in [&b""[..], &[0x0a], &[0x0a, 5, b'x'], &[0x0a, 1, b'x'], &[0x0a, 0xff, 0xff]] {
            assert_eq!(
                decode_chain(message).unwrap_err().kind,
                EndingKind::CertificateRefused,
                "{message:x?}"
            );
        }
    }
}
