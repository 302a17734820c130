//! Reports: terminal, HTML and the run folder.
