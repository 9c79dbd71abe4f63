//! The addresses of a host, in the order in which they are tried.
//!
//! [`Addresses`] owns the list, which address is tried first, and when the name is looked up again: after
//! five minutes, and when an address fails, at once if that address had answered well. There is at most one
//! look-up at a time, and nobody waits for it while a good address is known. The last good addresses are kept
//! for ever: most failures of name servers pass, and most addresses stay. A numeric address is never looked
//! up. The driver does the look-up.
//!
//! A good answer makes an address good: it is tried first from then on. A failure makes it bad: it is tried
//! last, behind the addresses that failed before it, until it has answered well.

use crate::time::{Mono, Now};
use std::cmp::Reverse;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Addresses of a name are looked up again after this.
const AGE: Duration = Duration::from_secs(300);

/// The least pause before a look-up that a failure has caused, except for the first failure of an address
/// that had answered well. While an exchange is down, its name is looked up with the polls, and name servers
/// must not be flooded either.
const REST: Duration = Duration::from_secs(5);

/// Most addresses that are used of one look-up: more than any exchange has.
const MOST: usize = 16;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Addresses {
    /// In the order in which they are tried.
    list: Vec<Address>,
    /// True while a look-up is under way.
    pub is_looking_up: bool,
    /// From this time on, the next use of the name looks it up. [`Mono::NEVER`] for a numeric address.
    look_up_at: Mono,
    /// The failure of an address asks for no look-up before this.
    rest_until: Mono,
    /// Why the last look-up found nothing.
    trouble: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug)]
struct Address {
    at: SocketAddr,
    /// When it last answered well.
    good_at: Mono,
    /// When it failed; zero if it has not failed since it last answered well.
    failed_at: Mono,
}

impl Address {
    fn new(at: SocketAddr) -> Address {
        Address { at, good_at: Mono::default(), failed_at: Mono::default() }
    }
}

impl Addresses {
    /// The address of a numeric host. A name has no address yet.
    pub fn of(host: &str, port: u16) -> Addresses {
        let literal = host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, port));
        Addresses {
            list: literal.map(Address::new).into_iter().collect(),
            look_up_at: literal.map_or(Mono::default(), |_| Mono::NEVER),
            rest_until: literal.map_or(Mono::default(), |_| Mono::NEVER),
            ..Addresses::default()
        }
    }

    /// True if this address is in the list, and has not failed since it last answered well.
    pub fn is_good(&self, address: Option<SocketAddr>) -> bool {
        self.list.iter().any(|it| Some(it.at) == address && it.failed_at == Mono::default())
    }

    /// True if an address of the list has not failed since it last answered well.
    pub fn has_good(&self) -> bool {
        self.list.iter().any(|it| it.failed_at == Mono::default())
    }

    /// How many there are.
    pub fn len(&self) -> u32 {
        self.list.len() as u32
    }

    /// The address that is tried first.
    pub fn first(&self) -> Option<SocketAddr> {
        self.list.first().map(|it| it.at)
    }

    /// Why the last look-up found nothing, unless another is under way.
    pub fn trouble(&self) -> Option<Box<str>> {
        self.trouble.clone().filter(|_| !self.is_looking_up)
    }

    /// True if the name is to be looked up now. Then the look-up counts as begun.
    pub fn look_up(&mut self, now: Now) -> bool {
        let is_due = !self.is_looking_up && (self.look_up_at <= now.mono || self.list.is_empty());
        self.is_looking_up |= is_due;
        is_due
    }

    /// A request to this address was answered well.
    pub fn worked(&mut self, address: Option<SocketAddr>, now: Now) {
        // The address may have left the list meanwhile.
        if let Some(known) = self.list.iter_mut().find(|it| Some(it.at) == address) {
            (known.good_at, known.failed_at) = (now.mono, Mono::default());
            self.sort();
        }
    }

    /// An attempt or a request at an address, which began at `begun`, has failed: the name may have moved.
    /// Returns false if the address is not at fault, because it has answered something else well since.
    pub fn failed(&mut self, address: Option<SocketAddr>, begun: Mono, now: Now) -> bool {
        let known = self.list.iter_mut().find(|it| Some(it.at) == address);
        if address.is_none() || known.as_ref().is_some_and(|it| it.good_at > begun) {
            return false;
        }
        let had_worked = known.as_ref().is_some_and(|it| it.good_at > it.failed_at);
        if let Some(known) = known {
            known.failed_at = now.mono;
            self.sort();
        }
        let rest = if had_worked { Duration::ZERO } else { REST };
        let at = self.rest_until.max(now.mono + rest);
        if at < self.look_up_at {
            (self.look_up_at, self.rest_until) = (at, at + REST);
        }
        true
    }

    /// The look-up has found these, at least one.
    pub fn found(&mut self, list: Vec<SocketAddr>, now: Now) {
        let known = |at| self.list.iter().find(|it| it.at == at).copied();
        let known = |at| known(at).unwrap_or(Address::new(at));
        self.list = alternating(list).into_iter().take(MOST).map(known).collect();
        self.sort();
        (self.is_looking_up, self.trouble) = (false, None);
        self.look_up_at = now.mono + AGE;
    }

    /// The look-up has found nothing. Returns true if the look-up before it did not fail.
    pub fn not_found(&mut self, why: &str, now: Now) -> bool {
        (self.is_looking_up, self.look_up_at) = (false, now.mono + REST);
        self.trouble.replace(why.into()).is_none()
    }

    /// Puts the address that answered well last first, and the address that failed last at the end. The
    /// others keep their order.
    fn sort(&mut self) {
        self.list.sort_by_key(|it| (it.failed_at, Reverse(it.good_at)));
    }
}

/// The same addresses, with the two families in turn, beginning with the family of the first address (RFC
/// 8305, 4). A broken family, as IPv6 is in many networks, then costs one attempt.
fn alternating(list: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let leading = list.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        list.into_iter().partition(|it| it.is_ipv6() == leading);
    let in_turn = |at| [first.get(at), second.get(at)];
    (0..first.len().max(second.len())).flat_map(in_turn).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::UnixMs;

    fn at(seconds: u64) -> Now {
        Now { mono: Mono(seconds * 1_000_000), unix: UnixMs(0) }
    }

    fn in_order(addresses: &Addresses) -> Vec<SocketAddr> {
        addresses.list.iter().map(|it| it.at).collect()
    }

    fn list(texts: &[&str]) -> Vec<SocketAddr> {
        let parse = |text: &&str| text.parse().expect("an address");
        texts.iter().map(parse).collect()
    }

    #[test]
    fn the_families_take_turns() {
        let check = |texts: &[&str], expected: &[&str]| {
            assert_eq!(alternating(list(texts)), list(expected));
        };
        check(&[], &[]);
        check(&["[::1]:1", "[::2]:1"], &["[::1]:1", "[::2]:1"]);
        check(
            &["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"],
            &["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"],
        );
        check(
            &["1.1.1.1:1", "[::1]:1", "[::2]:1", "1.1.1.2:1"],
            &["1.1.1.1:1", "[::1]:1", "1.1.1.2:1", "[::2]:1"],
        );
    }

    #[test]
    fn both_families_are_among_many_addresses() {
        let [first, second] = [1, 2].map(|family| {
            let text = |last| match family {
                1 => format!("[::{last}]:1"),
                _ => format!("1.1.1.{last}:1"),
            };
            (1..=20)
                .map(|last| text(last).parse().expect("an address"))
                .collect::<Vec<SocketAddr>>()
        });
        let mut addresses = Addresses::default();
        addresses.found([first, second].concat(), at(0));
        assert_eq!(addresses.len() as usize, MOST);
        let count = addresses.list.iter().filter(|it| it.at.is_ipv4()).count();
        assert_eq!(count, MOST / 2);
    }

    #[test]
    fn a_name_is_looked_up_at_once_after_five_minutes_and_after_a_failure() {
        let mut addresses = Addresses::of("okx.com", 443);
        assert_eq!(addresses.len(), 0);
        assert!(addresses.look_up(at(0)));
        assert!(!addresses.look_up(at(0)), "one look-up at a time");
        assert!(addresses.not_found("no answer", at(1)), "that is news");
        assert!(addresses.look_up(at(1)), "nothing is known: no rest");
        assert!(!addresses.not_found("no answer", at(1)));
        addresses.found(list(&["1.1.1.1:1", "1.1.1.2:1"]), at(2));
        assert!(!addresses.look_up(at(301)));
        assert!(addresses.look_up(at(302)));
        // A dead name server: what is known stays, and it is asked with a rest.
        assert!(addresses.not_found("no answer", at(310)), "that is news again");
        assert_eq!(in_order(&addresses).len(), 2);
        assert!(!addresses.look_up(at(314)));
        assert!(addresses.look_up(at(315)));
        let only = list(&["1.1.1.1:1"]);
        let fail = |addresses: &mut Addresses, second| {
            assert!(addresses.failed(Some(only[0]), at(second).mono, at(second)));
        };
        addresses.found(only.clone(), at(315));
        fail(&mut addresses, 316);
        assert!(!addresses.look_up(at(320)), "it has never worked");
        assert!(addresses.look_up(at(321)));
        addresses.found(only.clone(), at(330));
        addresses.worked(Some(only[0]), at(331));
        fail(&mut addresses, 332);
        assert!(addresses.look_up(at(332)), "it had worked");
        addresses.found(only.clone(), at(332));
        addresses.worked(Some(only[0]), at(333));
        fail(&mut addresses, 334);
        assert!(!addresses.look_up(at(336)), "that one was for a failure");
        assert!(addresses.look_up(at(337)));
    }

    #[test]
    fn an_exchange_that_fails_every_other_time_floods_no_name_server() {
        let mut addresses = Addresses::of("okx.com", 443);
        let only = list(&["1.1.1.1:1"]);
        let mut look_ups = 0;
        for second in 0..600 {
            if addresses.look_up(at(second)) {
                addresses.found(only.clone(), at(second));
                look_ups += 1;
            }
            match second % 2 {
                0 => addresses.worked(Some(only[0]), at(second)),
                _ => assert!(addresses.failed(Some(only[0]), at(second).mono, at(second))),
            }
        }
        assert!((100..=122).contains(&look_ups), "{look_ups}");
    }

    #[test]
    fn the_last_that_worked_is_tried_first_and_what_failed_last() {
        let mut addresses = Addresses::of("okx.com", 443);
        // The second, what happens to which addresses, and their order then. A bad one has a `!`. What fails began
        // two seconds earlier; it is `late` if the address is not at fault.
        for step in [
            "0 found 1 2 3 | 1 2 3",
            "1 worked 2 | 2 1 3",
            "1 found 3 2 1 | 2 3 1",
            "1 worked 9 | 2 3 1",
            "2 found 9 | 9",
            "3 found 1 2 3 | 1 2 3",
            "4 failed 1 | 2 3 1!",
            // Whatever the order of the name server.
            "5 found 1 2 3 | 2 3 1!",
            "6 failed 2 | 3 1! 2!",
            "7 failed 3 | 1! 2! 3!",
            "8 worked 2 | 2 1! 3!",
            // It answered well after what has failed was begun.
            "9 late 2 | 2 1! 3!",
            "10 found 1 9 | 9 1!",
        ] {
            let (event, expected) = step.split_once(" | ").expect("an event and an order");
            let words: Vec<&str> = event.split(' ').collect();
            let [second, what, ref names @ ..] = words[..] else { panic!("{step}") };
            let second = second.parse().expect("a second");
            let named = |name: &&str| format!("1.1.1.{name}:1").parse().expect("an address");
            let named: Vec<SocketAddr> = names.iter().map(named).collect();
            match what {
                "found" => addresses.found(named, at(second)),
                "worked" => addresses.worked(Some(named[0]), at(second)),
                _ => {
                    let is_at_fault =
                        addresses.failed(Some(named[0]), at(second - 2).mono, at(second));
                    assert_eq!(is_at_fault, what == "failed", "{step}");
                }
            }
            let shown = |it: &Address| {
                let bad = if addresses.is_good(Some(it.at)) { "" } else { "!" };
                format!("{it}{bad}", it = it.at.ip().to_string().replace("1.1.1.", ""))
            };
            let shown: Vec<String> = addresses.list.iter().map(shown).collect();
            assert_eq!(shown.join(" "), expected, "{step}");
            assert_eq!(addresses.has_good(), shown.iter().any(|it| !it.ends_with('!')), "{step}");
        }
    }
}
