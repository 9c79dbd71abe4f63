//! What is logged, caught for tests.

use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static LINES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Keeps the lines of a thread that catches them, and drops all others.
struct Catcher;

impl log::Log for Catcher {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        LINES.with_borrow_mut(|lines| {
            if let Some(lines) = lines {
                lines.push(format!("{} {}", record.level(), record.args()));
            }
        });
    }

    fn flush(&self) {}
}

/// The lines of level `info` and above that this logs.
pub fn logged(act: impl FnOnce()) -> Vec<String> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&Catcher).expect("no other test sets one");
        log::set_max_level(log::LevelFilter::Info);
    });
    LINES.set(Some(Vec::new()));
    act();
    LINES.take().expect("this function has put it there")
}
