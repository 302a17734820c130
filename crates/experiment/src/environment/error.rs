//! Errors of an environment: the operation, its cause, a hint, and the last lines of the component concerned.

use std::fmt;

/// Something of the environment is not as it must be.
#[derive(Debug)]
pub struct EnvironmentError {
    /// The operation and its subject, such as `start client-proxy`.
    pub operation: String,
    /// What was wrong.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The component that it is about; absent where it is about none.
    pub component: Option<Box<LastLines>>,
    /// Another attempt would fail the same way.
    pub is_lasting: bool,
}

/// A component, with the last lines of its log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LastLines {
    /// Its name.
    pub component: String,
    /// The lines.
    pub lines: Vec<String>,
}

impl EnvironmentError {
    /// An error with a cause.
    pub fn new(
        operation: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let (operation, source) = (operation.into(), Some(source.into()));
        Self { operation, source, hint: None, component: None, is_lasting: false }
    }

    /// Says that another attempt would fail the same way.
    #[must_use]
    pub fn lasting(mut self) -> Self {
        self.is_lasting = true;
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says which component it is about, with the last lines of its log.
    #[must_use]
    pub fn about_component(mut self, component: impl Into<String>, lines: Vec<String>) -> Self {
        self.component = Some(Box::new(LastLines { component: component.into(), lines }));
        self
    }

    /// What to do about it: its own hint, or that of the nearest cause that has one.
    #[must_use]
    pub fn nearest_hint(&self) -> Option<&str> {
        self.with_causes().find_map(|error| error.hint.as_deref())
    }

    /// The component that it or its nearest cause is about.
    #[must_use]
    pub fn nearest_component(&self) -> Option<&LastLines> {
        self.with_causes().find_map(|error| error.component.as_deref())
    }

    /// Whether it, or a cause, would fail another attempt the same way.
    #[must_use]
    pub fn lasts(&self) -> bool {
        self.with_causes().any(|error| error.is_lasting)
    }

    /// It and all its causes of its own kind.
    fn with_causes(&self) -> impl Iterator<Item = &Self> {
        let first: &(dyn std::error::Error + 'static) = self;
        std::iter::successors(Some(first), |error| error.source()).filter_map(|error| error.downcast_ref())
    }
}

/// Makes any error the cause of an [`EnvironmentError`].
pub trait ErrorContext<T> {
    /// `operation` is what failed, as in [`EnvironmentError::new`].
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

/// An error and its causes on one line, as `operation: cause: cause of the cause`.
#[must_use]
pub fn in_one_line(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
