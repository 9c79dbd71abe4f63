//! owners
