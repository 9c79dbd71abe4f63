//! Symbols: the names of markets, `BASE/QUOTE`.
//!
//! [`Symbols`] owns the names of all symbols ever seen, their numbers, and the table of the accepted
//! spellings: `BTC/USDT`, `BTC-USDT`, `BTC_USDT`, `BTCUSDT`, in any case.
//!
//! It never guesses where a joined spelling divides: `BTCUSDT` is found because `BTC/USDT` was seen, not
//! because it ends like a quote asset. The caller says which symbols are tracked. No name is ever forgotten,
//! so a [`SymbolId`] stays valid; therefore the number of symbols is limited. The module also has
//! [`SourceId`], the number of a source.

use crate::log_targets::MARKET;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The longest asset. Exchanges use at most ten letters; tokens may have longer names.
pub const ASSET_BYTES: usize = 20;

/// The longest symbol: two assets and the slash.
const SYMBOL_BYTES: usize = 2 * ASSET_BYTES + 1;

/// What each byte of a requested symbol stands for: itself in upper case, `/` for the separators, 0
/// for a byte that no symbol has.
const UPPER: [u8; 256] = {
    let mut upper = [0; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        upper[byte as usize] = match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => byte.to_ascii_uppercase(),
            b'/' | b'-' | b'_' => b'/',
            _ => 0,
        };
        byte += 1;
    }
    upper
};

/// A map whose keys are names of markets. Its hash takes half as many instructions as the standard library's.
/// The hash has a seed, so that an exchange cannot choose names that collide.
pub(super) type NameMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// One symbol: its place among all symbols ever seen. A number is never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId(pub u32);

/// One source: its place in `Config::sources`, which is the order of failover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u16);

impl SymbolId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl SourceId {
    /// Not a source, but the engine of the cluster: its name is looked up like the names of
    /// exchanges.
    pub const ENGINE: SourceId = SourceId(u16::MAX);

    /// The number as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A canonical symbol: `BASE/QUOTE`, each side `[A-Z0-9]{1,20}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolName {
    text: Box<str>,
    base_len: u8,
}

/// The result of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// A symbol that a source tracks.
    Known(SymbolId),
    /// A possible symbol that no source tracks.
    Unknown,
    /// Not a symbol: a wrong character, two separators, an empty or too long side.
    Malformed,
}

/// The names of all symbols and their numbers.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    names: Vec<SymbolName>,
    /// By canonical name and by joined form: the symbol, or the first of several.
    forms: NameMap<Box<[u8]>, SymbolId>,
    /// The joined forms that several symbols have in common.
    clashes: BTreeMap<Box<[u8]>, Clash>,
    /// Symbols that only the history file has named. They do not count against the limit of the others, and
    /// have a limit of their own, which is as high.
    recalled: BTreeSet<SymbolId>,
    /// How many symbols there may be. Existing symbols above the limit stay.
    pub(super) cap: usize,
}

/// A joined form of several symbols: `AB/C` and `A/BC`.
#[derive(Debug)]
struct Clash {
    symbols: Vec<SymbolId>,
    warned: bool,
}

/// A symbol's text in upper case with a slash for the separator, on the stack.
pub(super) struct Spelling {
    bytes: [u8; SYMBOL_BYTES],
    len: usize,
    slash: Option<usize>,
}

impl SymbolName {
    /// `BASE/QUOTE`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The asset that is bought and sold.
    pub fn base(&self) -> &str {
        &self.text[..usize::from(self.base_len)]
    }

    /// The sort key of names: the first bytes as a big-endian number, then the name. Most names differ in the
    /// number, so a sort of thousands rarely reads the names, which are scattered in memory.
    pub(super) fn sort_key(&self) -> (u128, &str) {
        let mut bytes = [0; size_of::<u128>()];
        let len = self.text.len().min(bytes.len());
        bytes[..len].copy_from_slice(&self.text.as_bytes()[..len]);
        (u128::from_be_bytes(bytes), &self.text)
    }

    /// The asset that is paid with.
    pub fn quote(&self) -> &str {
        &self.text[usize::from(self.base_len) + 1..]
    }
}

impl Symbols {
    /// The number of symbols ever seen. Every [`SymbolId`] is below it.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn name(&self, symbol: SymbolId) -> &SymbolName {
        &self.names[symbol.index()]
    }

    /// Finds a symbol in any accepted form. `known` says which symbols count.
    pub(super) fn find(&self, text: &[u8], known: impl Fn(SymbolId) -> bool) -> Lookup {
        let Some(spelling) = Spelling::any(text) else {
            return Lookup::Malformed;
        };
        let clash = match spelling.slash {
            Some(_) => None,
            None => self.clashes.get(spelling.as_bytes()),
        };
        let symbol = match clash {
            Some(clash) => clash.only_one(known),
            None => self.get(&spelling).filter(|symbol| known(*symbol)),
        };
        symbol.map_or(Lookup::Unknown, Lookup::Known)
    }

    /// The symbol with this name, or the first with this joined form.
    pub(super) fn get(&self, spelling: &Spelling) -> Option<SymbolId> {
        self.forms.get(spelling.as_bytes()).copied()
    }

    /// The number of a canonical name. Assigns a number if it has none. `None` if the name is not canonical,
    /// or if the limit is reached.
    pub(super) fn number_of(&mut self, name: &str) -> Option<SymbolId> {
        self.intern(&Spelling::of_name(name)?)
    }

    /// Like [`Symbols::number_of`], for a name from the history file.
    pub(super) fn recall(&mut self, name: &str) -> Option<SymbolId> {
        let spelling = Spelling::of_name(name)?;
        let known = self.get(&spelling);
        if known.is_none() && self.recalled.len() < self.cap {
            let symbol = self.add(&spelling);
            self.recalled.insert(symbol);
            return Some(symbol);
        }
        known
    }

    /// The number of a symbol. Assigns a number if it has none. `None` if the limit is reached.
    pub(super) fn intern(&mut self, spelling: &Spelling) -> Option<SymbolId> {
        let known = self.get(spelling);
        if known.is_some_and(|symbol| !self.recalled.contains(&symbol)) {
            return known;
        }
        if self.names.len() - self.recalled.len() >= self.cap {
            return None;
        }
        let symbol = known.unwrap_or_else(|| self.add(spelling));
        self.recalled.remove(&symbol);
        Some(symbol)
    }

    fn add(&mut self, spelling: &Spelling) -> SymbolId {
        let symbol = SymbolId(self.names.len() as u32);
        let name = spelling.name();
        let joined = [name.base(), name.quote()].concat().into_boxed_str();
        self.names.push(name);
        self.forms.insert(spelling.as_bytes().into(), symbol);
        match self.forms.entry(joined.into_boxed_bytes()) {
            Entry::Vacant(form) => _ = form.insert(symbol),
            Entry::Occupied(form) => {
                let first = || Clash { symbols: vec![*form.get()], warned: false };
                let clash = self.clashes.entry(form.key().clone()).or_insert_with(first);
                clash.symbols.push(symbol);
            }
        }
        symbol
    }

    /// Warns once about each joined spelling that several known symbols share.
    pub(super) fn warn_of_clashes(&mut self, known: impl Fn(SymbolId) -> bool) {
        for clash in self.clashes.values_mut() {
            let mut sharing = clash.symbols.iter().filter(|symbol| known(**symbol));
            if let (false, Some(one), Some(other)) = (clash.warned, sharing.next(), sharing.next())
            {
                let (one, other) = (&self.names[one.index()], &self.names[other.index()]);
                log::warn!(
                    target: MARKET,
                    "ambiguous symbol symbol={}{} candidates={},{}",
                    one.base(),
                    one.quote(),
                    one.as_str(),
                    other.as_str()
                );
                clash.warned = true;
            }
        }
    }
}

impl Clash {
    /// The one known symbol of this spelling; `None` if there are several.
    fn only_one(&self, known: impl Fn(SymbolId) -> bool) -> Option<SymbolId> {
        let mut sharing = self.symbols.iter().filter(|symbol| known(**symbol));
        let one = sharing.next()?;
        sharing.next().is_none().then_some(*one)
    }
}

impl Spelling {
    /// The spelling of a market by its two assets. The assets must be canonical: an exchange may
    /// use `ABC` and `abc` for different assets, so case is not changed here.
    pub(super) fn canonical(base: &str, quote: &str) -> Option<Spelling> {
        if !is_asset(base) || !is_asset(quote) {
            return None;
        }
        let mut bytes = [0; SYMBOL_BYTES];
        let len = base.len() + 1 + quote.len();
        bytes[..base.len()].copy_from_slice(base.as_bytes());
        bytes[base.len()] = b'/';
        bytes[base.len() + 1..len].copy_from_slice(quote.as_bytes());
        Some(Spelling { bytes, len, slash: Some(base.len()) })
    }

    fn of_name(name: &str) -> Option<Spelling> {
        let (base, quote) = name.split_once('/')?;
        Spelling::canonical(base, quote)
    }

    /// The spelling of any accepted form; `None` if malformed.
    fn any(text: &[u8]) -> Option<Spelling> {
        let mut bytes = [0; SYMBOL_BYTES];
        let mut slash = None;
        for (at, (byte, out)) in text.iter().zip(bytes.get_mut(..text.len())?).enumerate() {
            *out = UPPER[usize::from(*byte)];
            if *out == b'/' && slash.replace(at).is_some() || *out == 0 {
                return None;
            }
        }
        let len = text.len();
        let fits = match slash {
            Some(at) => {
                (1..=ASSET_BYTES).contains(&at) && (1..=ASSET_BYTES).contains(&(len - at - 1))
            }
            None => (1..=2 * ASSET_BYTES).contains(&len),
        };
        fits.then_some(Spelling { bytes, len, slash })
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn name(&self) -> SymbolName {
        let text = std::str::from_utf8(self.as_bytes()).expect("letters, digits and a slash");
        let slash = self.slash.expect("only canonical spellings are named");
        SymbolName { text: text.into(), base_len: slash as u8 }
    }
}

fn is_asset(text: &str) -> bool {
    (1..=ASSET_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intern(symbols: &mut Symbols, text: &str) -> Option<SymbolId> {
        let (base, quote) = text.split_once('/').expect("canonical");
        symbols.intern(&Spelling::canonical(base, quote).expect("canonical"))
    }

    /// Symbols of `met` that do not begin with `!` are known.
    fn check(met: &[&str], asked: &[u8], expected: &str) {
        let mut symbols = Symbols { cap: 100, ..Symbols::default() };
        let mut known = Vec::new();
        for text in met {
            let id = intern(&mut symbols, text.trim_start_matches('!')).expect("room");
            if !text.starts_with('!') {
                known.push(id);
            }
        }
        let found = match symbols.find(asked, |id| known.contains(&id)) {
            Lookup::Known(id) => symbols.name(id).as_str().to_string(),
            other => format!("{other:?}"),
        };
        let shown = String::from_utf8_lossy(asked);
        assert_eq!(found, expected, "{shown:?} among {met:?}");
    }

    #[test]
    fn every_accepted_form_finds_the_symbol_in_any_case() {
        for asked in ["BTC/USDT", "BTC-USDT", "BTC_USDT", "BTCUSDT"] {
            check(&["ETH/BTC", "BTC/USDT"], asked.as_bytes(), "BTC/USDT");
            check(&["ETH/BTC", "BTC/USDT"], asked.to_lowercase().as_bytes(), "BTC/USDT");
        }
        check(&["1INCH/USDT"], b"1inchUsdt", "1INCH/USDT");
    }

    #[test]
    fn what_no_source_tracks_is_unknown_in_every_form() {
        for asked in ["FOO/BAR", "foo-bar", "foo_bar", "FOOBAR", "X", "BTC/USD"] {
            check(&["BTC/USDT", "!FOO/BAR"], asked.as_bytes(), "Unknown");
        }
        // The market is not guessed by its suffix: the assets are known, the market is not.
        check(&["BTC/USDT", "ETH/BTC"], b"ETHUSDT", "Unknown");
        check(&["BTC/USDT"], b"BTC/USDTX", "Unknown");
    }

    #[test]
    fn what_cannot_be_a_symbol_is_malformed() {
        let malformed: [&[u8]; 22] = [
            b"",
            b"/",
            b"-",
            b"/USDT",
            b"BTC/",
            b"BTC//USDT",
            b"BTC/USDT/",
            b"BTC-USDT-X",
            b"BTC/US-DT",
            b"BTC%2FUSDT",
            b"BTC USDT",
            b" BTC/USDT",
            b"BTC/USDT\n",
            b"BTC\0USDT",
            b"\x7f",
            b"BTC.X/USDT",
            b"BTC:USDT",
            b"BTC\\USDT",
            "BTC/\u{20ae}".as_bytes(),
            "\u{ff22}TC/USDT".as_bytes(),
            b"BTC\xffUSDT",
            b"*",
        ];
        for asked in malformed {
            check(&["BTC/USDT"], asked, "Malformed");
        }
    }

    #[test]
    fn sides_of_twenty_fit_and_sides_of_twenty_one_do_not() {
        let symbol = |base: usize, quote: usize, separator: &str| {
            format!("{}{separator}{}", "B".repeat(base), "Q".repeat(quote))
        };
        for separator in ["/", "-", "_"] {
            for (base, quote) in [(1, 1), (19, 20), (20, 20), (20, 1)] {
                let asked = symbol(base, quote, separator);
                check(&[&symbol(base, quote, "/")], asked.as_bytes(), &symbol(base, quote, "/"));
            }
            for (base, quote) in [(21, 1), (1, 21), (21, 20), (0, 20), (20, 0)] {
                check(&[], symbol(base, quote, separator).as_bytes(), "Malformed");
            }
        }
        check(&[&symbol(20, 20, "/")], symbol(20, 20, "").as_bytes(), &symbol(20, 20, "/"));
        check(&[], symbol(20, 21, "").as_bytes(), "Malformed");
        check(&[], &[b'A'; 1000], "Malformed");
    }

    #[test]
    fn a_joined_form_of_two_known_symbols_is_off_and_the_other_forms_work() {
        let met = ["AB/CD", "A/BCD", "ABC/D"];
        check(&met, b"ABCD", "Unknown");
        check(&met, b"AB-CD", "AB/CD");
        check(&met, b"a/bcd", "A/BCD");
        check(&met, b"abc_d", "ABC/D");
        check(&["AB/CD", "!A/BCD"], b"ABCD", "AB/CD");
        check(&["!AB/CD", "A/BCD", "!ABC/D"], b"ABCD", "A/BCD");
        check(&["!AB/CD", "!A/BCD"], b"ABCD", "Unknown");
    }

    #[test]
    fn a_number_is_given_once_and_the_cap_holds() {
        let mut symbols = Symbols { cap: 2, ..Symbols::default() };
        let first = intern(&mut symbols, "A/B");
        assert_eq!(first, Some(SymbolId(0)));
        assert_eq!(intern(&mut symbols, "C/D"), Some(SymbolId(1)));
        assert_eq!(intern(&mut symbols, "E/F"), None);
        assert_eq!(intern(&mut symbols, "A/B"), first, "full, but met before");
        assert_eq!(symbols.len(), 2);
        assert_eq!(symbols.find(b"E/F", |_| true), Lookup::Unknown);
    }

    #[test]
    fn canonical_names_are_read_strictly() {
        let parse = |text: &str| {
            let (base, quote) = text.split_once('/')?;
            Spelling::canonical(base, quote).map(|spelling| spelling.name())
        };
        let name = parse("BTC/USDT").expect("canonical");
        assert_eq!((name.as_str(), name.base(), name.quote()), ("BTC/USDT", "BTC", "USDT"));
        for text in ["btc/usdt", "BTC-USDT", "BTCUSDT", "BTC/", "/USDT", "A/B/C", "", "A.B/C"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_joined_form_is_warned_of_once() {
        let mut symbols = Symbols { cap: 10, ..Symbols::default() };
        intern(&mut symbols, "AB/C");
        intern(&mut symbols, "A/BC");
        symbols.warn_of_clashes(|id| id == SymbolId(0));
        let warned = |symbols: &Symbols| symbols.clashes[&b"ABC"[..]].warned;
        assert!(!warned(&symbols), "one known symbol is no clash");
        symbols.warn_of_clashes(|_| true);
        assert!(warned(&symbols));
    }
}
