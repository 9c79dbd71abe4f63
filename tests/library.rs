//! All tests that call the library without a daemon: the simulation in virtual time, and the
//! parsers. One program, because each further one would compile the support again.

mod support;

mod claims;
mod requests;
mod sim;
mod support_selftest;
mod virtual_time;
mod wire;
