//! Members: how a file of JSON becomes structs of required and optional members.
//!
//! Owns the trait [`Form`], and the two macros that say what a file may hold: `members!` makes a
//! struct whose fields are members of an object, `names!` an enum whose variants are words. Reading
//! goes on after a fault, so that one run reports all of them. What the members mean to each other is
//! up to whoever asks. The configuration itself, where every key has a default, is read by `values`.

use super::fault::Report;
use super::json::Node;
use super::leaves::{Unit, number};

/// The fault of a member that is there twice.
pub(crate) const TWICE: &str = "given twice";

/// What a member of a file may be.
pub(crate) trait Form {
    /// The value. After a fault has been reported: some value, of which nothing else is said.
    fn read(node: &Node<'_>, report: &mut Report) -> Self;
}

/// Makes a struct whose fields are the members of an object. A row is a documented field, its type,
/// the value without such a member (if there is none, it is required), and the member's name.
macro_rules! members {
    ($(#[doc = $about:literal])+ $vis:vis struct $name:ident { $(
        $(#[doc = $what:literal])+
        $field:ident: $type:ty $(= $default:expr)?, $key:literal;
    )+ }) => {
        $(#[doc = $about])+
        $vis struct $name { $( $(#[doc = $what])+ pub(super) $field: $type, )+ }

        impl $crate::config::members::Form for $name {
            // A copy at each place that has such a member would make the program larger.
            #[inline(never)]
            fn read(
                node: &$crate::config::Node<'_>,
                report: &mut $crate::config::Report,
            ) -> $name {
                let mut members = $crate::config::members::Members::of(node, report);
                let read = $name { $(
                    $field: $crate::config::members::members!(@ members $key $($default)?),
                )+ };
                members.end();
                read
            }
        }

        #[cfg(test)]
        impl $crate::config::tests::describe::Schema for $name {
            fn schema(types: &mut $crate::config::tests::describe::Types) -> serde_json::Value {
                let about = concat!($($about),+);
                types.object(stringify!($name), about, |members| { $(
                    let default: &[&str] = &[$(stringify!($default))?];
                    members.add::<$type>($key, concat!($($what),+), default.is_empty());
                )+ })
            }
        }
    };
    (@ $members:ident $key:literal) => {{
        let node = $members.needed($key);
        $crate::config::members::Form::read(&node, $members.report)
    }};
    (@ $members:ident $key:literal $default:expr) => {
        match $members.find($key) {
            Some(node) => $crate::config::members::Form::read(&node, $members.report),
            None => $default,
        }
    };
}
pub(crate) use members;

/// The value of an empty object, for structs whose members all have defaults.
pub(crate) fn empty<T: Form>() -> T {
    T::read(&Node::of(String::new(), "{}"), &mut Report::default())
}

/// An enum whose variants are words.
pub(crate) trait Named: Copy + 'static {
    /// The words, and their variants in the same order.
    const NAMES: &'static [&'static str];
    const ALL: &'static [Self];

    /// Its place among them.
    fn place(self) -> usize;

    /// Its word.
    fn name(self) -> &'static str {
        Self::NAMES[self.place()]
    }

    /// The variant of a word.
    fn named(word: &str) -> Option<Self> {
        let place = Self::NAMES.iter().position(|name| *name == word);
        place.map(|place| Self::ALL[place])
    }
}

/// Makes an enum whose variants are words.
macro_rules! names {
    ($(#[doc = $about:literal])+ $vis:vis enum $name:ident { $(
        $(#[doc = $what:literal])*
        $variant:ident $word:literal
    )+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $( $(#[doc = $what])* $variant, )+ }

        impl $crate::config::members::Named for $name {
            const NAMES: &'static [&'static str] = &[$($word),+];
            const ALL: &'static [$name] = &[$($name::$variant),+];

            fn place(self) -> usize {
                self as usize
            }
        }

        #[cfg(test)]
        impl $crate::config::tests::describe::Described for $name {
            const NAME: &'static str = stringify!($name);
            const ABOUT: &'static str = concat!($($about),+);
            const WORDS: &'static [&'static str] = &[$(concat!($($what),*)),+];
        }
    };
}
pub(crate) use names;

/// The members of an object that are not read yet.
pub(crate) struct Members<'n, 'r> {
    whole: &'r Node<'n>,
    left: Vec<(String, Node<'n>)>,
    known: Vec<&'static str>,
    pub(crate) report: &'r mut Report,
}

impl<'n, 'r> Members<'n, 'r> {
    pub(crate) fn of(whole: &'r Node<'n>, report: &'r mut Report) -> Members<'n, 'r> {
        Members { whole, left: members_of(whole, "an object", report), known: Vec::new(), report }
    }

    /// Takes the member of this name out.
    pub(crate) fn find(&mut self, name: &'static str) -> Option<Node<'n>> {
        self.known.push(name);
        let place = self.left.iter().position(|(known, _)| known == name)?;
        Some(self.left.remove(place).1)
    }

    /// The same for a member that is required.
    pub(crate) fn needed(&mut self, name: &'static str) -> Node<'n> {
        self.find(name).unwrap_or_else(|| {
            let path = self.whole.path_of(name);
            self.report.place(&path, self.whole.offset);
            Node::of(path, "")
        })
    }

    /// Reports the members that are not known.
    pub(crate) fn end(self) {
        for (name, node) in &self.left {
            let expected = self.known.join(", ");
            let message = match self.known.contains(&&**name) {
                true => TWICE.to_owned(),
                false => format!("unknown member, expected one of {expected}"),
            };
            self.report.fault(&node.path, message);
        }
    }
}

/// The members of an object, some perhaps twice.
pub(crate) fn members_of<'n>(
    node: &Node<'n>,
    expected: &str,
    report: &mut Report,
) -> Vec<(String, Node<'n>)> {
    let Some(members) = node.members() else {
        refuse(node, None, expected, report);
        return Vec::new();
    };
    for (_, member) in &members {
        report.place(&member.path, member.offset);
    }
    members
}

/// Reports that a value is wrong: the message `why`, or else what was expected. What is missing in
/// something that is wrong itself is not reported.
pub(crate) fn refuse(node: &Node<'_>, why: Option<String>, expected: &str, report: &mut Report) {
    if !report.is_faulty_around(&node.path) {
        node.refuse(why, expected.to_owned(), report);
    }
}

/// The text of a value; empty after a fault.
pub(crate) fn text(node: &Node<'_>, report: &mut Report) -> String {
    node.text().unwrap_or_else(|| {
        refuse(node, None, "a text", report);
        String::new()
    })
}

/// The place of a value among these words.
fn word(node: &Node<'_>, names: &[&str], report: &mut Report) -> usize {
    let text = node.text();
    let place = text.and_then(|text| names.iter().position(|name| *name == text));
    place.unwrap_or_else(|| {
        refuse(node, None, &format!("one of {}", names.join(", ")), report);
        0
    })
}

fn whole(node: &Node<'_>, most: u32, report: &mut Report) -> u32 {
    let bounds = number(Unit::Count, 0, most.into());
    bounds.read(node).unwrap_or_else(|_| {
        refuse(node, None, &bounds.to_string(), report);
        most
    })
}

/// The elements of a list.
fn items_of<'n>(node: &Node<'n>, report: &mut Report) -> Vec<Node<'n>> {
    let Some(items) = node.items() else {
        refuse(node, None, "a list", report);
        return Vec::new();
    };
    for item in &items {
        report.place(&item.path, item.offset);
    }
    items
}

/// Types that are read by a function of the value and the report.
macro_rules! leaves {
    ($($type:ty = $read:expr;)+) => { $(
        impl Form for $type {
            fn read(node: &Node<'_>, report: &mut Report) -> $type {
                $read(node, report)
            }
        }
    )+ };
}

leaves! {
    String = text;
    Box<str> = |node: &_, report: &mut _| text(node, report).into();
    u32 = |node: &_, report: &mut _| whole(node, u32::MAX, report);
    u16 = |node: &_, report: &mut _| whole(node, u16::MAX.into(), report) as u16;
    bool = |node: &Node<'_>, report: &mut _| node.switch().unwrap_or_else(|| {
        refuse(node, None, "true or false", report);
        false
    });
    Words = words;
}

/// Texts by name.
pub(crate) type Words = Vec<(Box<str>, Box<str>)>;

/// The most of them. Exchanges have ten.
const WORDS: usize = 1000;

fn words(node: &Node<'_>, report: &mut Report) -> Words {
    let members = members_of(node, "an object", report);
    if members.len() > WORDS {
        refuse(node, None, &format!("at most {WORDS} members"), report);
        return Words::new();
    }
    let mut words = Words::new();
    for (name, node) in members {
        if words.iter().any(|(known, _)| **known == *name) {
            report.fault(&node.path, TWICE);
        }
        words.push((name.into(), text(&node, report).into()));
    }
    words
}

/// Makes a type a text of a form of its own, of which this is an example.
macro_rules! texts {
    ($type:ty, $example:literal) => {
        impl $crate::config::members::Form for $type {
            fn read(node: &$crate::config::Node<'_>, report: &mut $crate::config::Report) -> $type {
                let read = match node.text() {
                    Some(text) => <$type>::try_from(text).map_err(Some),
                    None => Err(None),
                };
                read.unwrap_or_else(|message| {
                    let expected = concat!("a text like \"", $example, "\"");
                    $crate::config::members::refuse(node, message, expected, report);
                    <$type>::try_from($example.to_owned()).expect("an example is good")
                })
            }
        }
    };
}
pub(crate) use texts;

impl<T: Named> Form for T {
    #[inline(never)]
    fn read(node: &Node<'_>, report: &mut Report) -> T {
        T::ALL[word(node, T::NAMES, report)]
    }
}

impl<T: Form> Form for Option<T> {
    fn read(node: &Node<'_>, report: &mut Report) -> Option<T> {
        (!node.is_null()).then(|| T::read(node, report))
    }
}

impl<T: Form> Form for Vec<T> {
    #[inline(never)]
    fn read(node: &Node<'_>, report: &mut Report) -> Vec<T> {
        let items = items_of(node, report);
        items.iter().map(|item| T::read(item, report)).collect()
    }
}
