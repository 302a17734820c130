//! Errors of an environment: operation, cause, hint, and the last log lines of the component concerned.

use results::hide_credentials;
use std::fmt;

/// Failure of an environment.
#[derive(Debug)]
pub struct EnvironmentError {
    /// Operation and its subject, such as `start client-proxy`.
    pub operation: String,
    /// Cause.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
    /// Suggested fix.
    pub hint: Option<String>,
    /// Component that the error is about, if any.
    pub component: Option<Box<LastLines>>,
    /// True if another attempt would fail the same way.
    pub is_lasting: bool,
}

/// Component with the last lines of its log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LastLines {
    /// Name of the component.
    pub component: String,
    /// Last lines of its log.
    pub lines: Vec<String>,
}

impl EnvironmentError {
    /// Creates an error with a cause.
    pub fn new(
        operation: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let (operation, source) = (operation.into(), Some(source.into()));
        Self { operation, source, hint: None, component: None, is_lasting: false }
    }

    /// Marks the error as lasting: another attempt would fail the same way.
    #[must_use]
    pub fn lasting(mut self) -> Self {
        self.is_lasting = true;
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the component concerned and the last lines of its log.
    #[must_use]
    pub fn about_component(mut self, component: impl Into<String>, lines: Vec<String>) -> Self {
        self.component = Some(Box::new(LastLines { component: component.into(), lines }));
        self
    }

    /// Own hint, or that of the nearest cause that has one.
    #[must_use]
    pub fn nearest_hint(&self) -> Option<&str> {
        self.with_causes().find_map(|error| error.hint.as_deref())
    }

    /// Component of this error, or of the nearest cause that has one.
    #[must_use]
    pub fn nearest_component(&self) -> Option<&LastLines> {
        self.with_causes().find_map(|error| error.component.as_deref())
    }

    /// True if another attempt would fail the same way, according to this error or one of its causes.
    #[must_use]
    pub fn lasts(&self) -> bool {
        self.with_causes().any(|error| error.is_lasting)
    }

    /// This error and all causes that are also environment errors.
    fn with_causes(&self) -> impl Iterator<Item = &Self> {
        let first: &(dyn std::error::Error + 'static) = self;
        std::iter::successors(Some(first), |error| error.source()).filter_map(|error| error.downcast_ref())
    }
}

/// Wraps any error as the cause of an [`EnvironmentError`].
pub trait ErrorContext<T> {
    /// `operation` is the operation that failed, as in [`EnvironmentError::new`].
    fn context(self, operation: impl Into<String>) -> Result<T, EnvironmentError>;
}

impl<T, E: Into<Box<dyn std::error::Error + Send + Sync>>> ErrorContext<T> for Result<T, E> {
    fn context(self, operation: impl Into<String>) -> Result<T, EnvironmentError> {
        self.map_err(|source| EnvironmentError::new(operation, source))
    }
}

impl fmt::Display for EnvironmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.operation)
    }
}

impl std::error::Error for EnvironmentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// Formats an error and its causes on one line, as `operation: cause: cause of the cause`. Results and logs keep this text, so
/// it has no credentials of URLs.
#[must_use]
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    let text = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
    hide_credentials(&text).into_owned()
}
