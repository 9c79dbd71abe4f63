//! All tests that start the built binary, and those of what it is used with: sockets, files, exchanges,
//! a cluster. One program, because each further one would compile the support again.

mod support;

mod cli;
mod cluster;
mod commands;
mod deploy;
mod dialects;
mod docs;
mod fakes;
mod history;
mod loopback;
mod probe;
mod running;
mod store;
mod testing;
mod tls;
mod udf;
mod virtual_time;
