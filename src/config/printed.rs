//! Texts made from the tables of commands and flags: completions for shells, and the manual page
//! marketd(1) (man(7)).

use super::flags::{FLAGS, Flag, SUBCOMMANDS};
use super::members::names;
use std::collections::BTreeSet;

names! {
    /// A shell that completes words.
    pub enum Shell {
        /// GNU Bash.
        Bash "bash"
        /// Zsh, which runs the function for Bash: sourced, or as the file `_marketd` in its `fpath`.
        Zsh "zsh"
        /// fish.
        Fish "fish"
    }
}

/// The script that a shell reads.
pub(super) fn completions(shell: Shell) -> String {
    match shell {
        Shell::Bash => bash(),
        Shell::Zsh => format!(
            "#compdef marketd\nautoload -Uz bashcompinit && bashcompinit\n{}\
             [[ $funcstack[1] != _marketd ]] || _bash_complete -F _marketd\n",
            bash()
        ),
        Shell::Fish => fish(),
    }
}

fn bash() -> String {
    let words = |flags: &[Flag]| flags.iter().map(|it| it.name).collect::<Vec<_>>().join(" ");
    let cases = SUBCOMMANDS.iter().map(|it| {
        let choices: Vec<&str> = it.choices().collect();
        format!("        {}) words=\"{} {}\" ;;\n", it.name, choices.join(" "), words(it.flags))
    });
    let names: Vec<&str> = SUBCOMMANDS.iter().map(|it| it.name).collect();
    let (cases, names, flags) = (cases.collect::<String>(), names.join(" "), words(FLAGS));
    let all = FLAGS.iter().chain(SUBCOMMANDS.iter().flat_map(|it| it.flags));
    let with_value: BTreeSet<&str> =
        all.filter(|it| !it.value.is_empty()).map(|it| it.name).collect();
    let with_value = with_value.into_iter().collect::<Vec<_>>().join("|");
    format!(
        "_marketd() {{
    local words cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
    case $prev in
        {with_value}|backup)
            COMPREPLY=($(compgen -f -- \"$cur\"))
            return
            ;;
    esac
    case ${{COMP_WORDS[1]}} in
{cases}        *) words=\"{names} {flags}\" ;;
    esac
    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))
}}
complete -F _marketd marketd
"
    )
}

fn fish() -> String {
    let about = |text: &str| text.replace('\n', " ").replace('\'', "\\'");
    let flag = |when: &str, it: &Flag| {
        let short = it.short.strip_prefix('-').map_or(String::new(), |it| format!(" -s {it}"));
        let value = if it.value.is_empty() { "" } else { " -r" };
        let (name, about) = (it.name.trim_start_matches('-'), about(it.about));
        format!("complete -c marketd -n '{when}'{short} -l {name}{value} -d '{about}'\n")
    };
    let mut out: String = FLAGS.iter().map(|it| flag("__fish_use_subcommand", it)).collect();
    for it in SUBCOMMANDS {
        let (name, about) = (it.name, about(it.about));
        out += &format!("complete -c marketd -n __fish_use_subcommand -f -a {name} -d '{about}'\n");
        let when = format!("__fish_seen_subcommand_from {name}");
        for choice in it.choices() {
            out += &format!("complete -c marketd -n '{when}' -f -a {choice}\n");
        }
        out.extend(it.flags.iter().map(|it| flag(&when, it)));
    }
    out
}

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

/// A text on one line, with escapes for the characters that are special in roff.
fn escaped(text: &str) -> String {
    let text = text.trim_end().replace('\n', " ").replace('\\', "\\e");
    let text = text.replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_flag_is_completed() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = completions(shell);
            for it in SUBCOMMANDS {
                assert!(script.contains(it.name), "{}", it.name);
                for flag in it.flags.iter().chain(FLAGS) {
                    assert!(script.contains(flag.name.trim_start_matches('-')), "{}", flag.name);
                }
            }
            assert!(!script.contains("[URL]") && !script.contains("FILE)"), "{script}");
        }
    }

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
