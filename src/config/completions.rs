//! Completions for shells, made from the tables of commands and flags.

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
}
