//! TLS failures, as the error kinds under which they are counted.

use crate::error::ErrorKind;
use rustls::{AlertDescription, CertificateError, Error};
use std::io;

/// A TLS failure, carried inside an [`io::Error`] to the place where it is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}", .0.meaning())]
pub(crate) struct TlsFailure(pub(crate) ErrorKind);

impl TlsFailure {
    /// Classifies an error of the TLS library.
    pub(in crate::network) fn from_error(error: &Error, established: bool) -> Self {
        Self(match error {
            Error::InvalidCertificate(error) => of_certificate(error),
            Error::NoCertificatesPresented => ErrorKind::CertificateInvalid,
            Error::AlertReceived(alert) => of_alert(*alert),
            // QUIC alone requires one.
            Error::NoApplicationProtocol => ErrorKind::AlpnRefused,
            _ if established => ErrorKind::TlsProtocol,
            _ => ErrorKind::TlsHandshake,
        })
    }

    /// Returns the kind of the TLS failure inside `error`, if there is one.
    pub(crate) fn kind_of(error: &io::Error) -> Option<ErrorKind> {
        error.get_ref()?.downcast_ref::<Self>().map(|failure| failure.0)
    }
}

impl From<TlsFailure> for io::Error {
    fn from(failure: TlsFailure) -> Self {
        Self::other(failure)
    }
}

fn of_certificate(error: &CertificateError) -> ErrorKind {
    match error {
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => ErrorKind::CertificateExpired,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            ErrorKind::CertificateName
        }
        // An authority with the same name and another key is a different authority.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => ErrorKind::CertificateUntrusted,
        _ => ErrorKind::CertificateInvalid,
    }
}

/// The kind of an alert. Those about a certificate concern the client's: it is the only one that the peer received.
pub(in crate::network) fn of_alert(alert: AlertDescription) -> ErrorKind {
    match alert {
        AlertDescription::CertificateRequired
        | AlertDescription::NoCertificate
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied => ErrorKind::ClientCertificate,
        AlertDescription::NoApplicationProtocol => ErrorKind::AlpnRefused,
        _ => ErrorKind::TlsAlert,
    }
}
