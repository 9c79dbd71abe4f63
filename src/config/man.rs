//! The manual page marketd(1), made from the tables of commands and flags (man(7)).

use super::flags::{FLAGS, Flag, SUBCOMMANDS};

/// The page as roff: `marketd man | man -l -`.
pub(super) fn man() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut out = format!(
        ".TH MARKETD 1 \"\" \"marketd {version}\" \"User Commands\"\n\
         .SH NAME\nmarketd \\- polls exchanges and serves quotes, markets and charts as JSON over HTTP\n\
         .SH SYNOPSIS\n.B marketd\n[\\fIOPTIONS\\fR]\n.br\n.B marketd\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n\
         .SH DESCRIPTION\nmarketd polls exchanges, keeps the latest quotes, stores candles in one file, and \
         answers read-only JSON over HTTP GET. Without a configuration it serves a built-in demo exchange on \
         127.0.0.1:8080.\n.SH OPTIONS\n"
    );
    FLAGS.iter().for_each(|flag| out += &option(flag));
    out += ".SH COMMANDS\n";
    for it in SUBCOMMANDS {
        out += &format!(".TP\n.B {}\n{}.\n", escaped(&it.usage()), escaped(it.about));
        let own = |flag: &&Flag| !FLAGS.iter().any(|other| other.name == flag.name);
        it.flags.iter().filter(own).for_each(|flag| out += &option(flag));
    }
    out + ".SH EXIT STATUS\n\
           0 for success; 1 if healthcheck, probe or reload fails; 2 for a fault of the configuration \
           (--check too), of an address or of a file: one line for each fault says what it is.\n\
           .SH SIGNALS\nSIGTERM and SIGINT end marketd in good order.\n"
}

/// An item of a list of flags.
fn option(flag: &Flag) -> String {
    let short = match flag.short {
        "" => String::new(),
        short => format!("{short}, "),
    };
    let head = format!("{short}{} {}", flag.name, flag.value);
    let mut out = format!(".TP\n.B {}\n{}.", escaped(&head), escaped(flag.about));
    if !flag.variable.is_empty() {
        out += &format!(" The variable of the environment is {}.", escaped(flag.variable));
    }
    out + "\n"
}

/// A text on one line, in which no character means something to roff.
fn escaped(text: &str) -> String {
    let text = text.trim_end().replace('\n', " ").replace('\\', "\\e");
    let text = text.replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_command_flag_and_variable() {
        let page = man();
        let flags = SUBCOMMANDS.iter().flat_map(|it| it.flags).chain(FLAGS);
        for flag in flags {
            assert!(page.contains(&escaped(flag.name)), "{}", flag.name);
            assert!(page.contains(flag.variable), "{}", flag.variable);
        }
        for it in SUBCOMMANDS {
            assert!(page.contains(&format!("\n.B {}", it.name)), "{}", it.name);
        }
        // A line that begins with a point is a request: only those that are meant.
        let requests = [".TH ", ".SH ", ".TP", ".B ", ".br"];
        for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
            assert!(requests.iter().any(|it| line.starts_with(it)), "{line}");
        }
    }
}
