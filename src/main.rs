//! The marketd command.
fn main() {}
