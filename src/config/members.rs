//! Macros for JSON files in which most members are required: the files of dialects.
//!
//! `members!` makes a struct whose fields are the members of an object. `names!` makes an enum whose
//! variants are words. `texts!` makes a type readable from a text of its own form. `values` reads all of
//! them, as it reads the configuration. Rules between members are checked by the caller.

use super::fault::wrong;

/// Makes a struct whose fields are the members of an object. A row is a documented field, its type, its
/// default, the name of the member, and its rule if the type has one. A member without a default is
/// required. After a fault, the member has an arbitrary value.
macro_rules! members {
    ($(#[doc = $about:literal])+ $vis:vis struct $name:ident { $(
        $(#[doc = $what:literal])+
        $field:ident: $type:ty $(= $default:expr)?, $key:literal $($rule:expr)?;
    )+ }) => {
        $crate::config::values::object! {
            $(#[doc = $about])+
            $vis struct $name [usize::MAX, &[
                $($crate::config::members::members!(@ $key $($default)?)),+
            ]] { $(
                $(#[doc = $what])+
                $field: $type $(= $default)?, $key $($rule)?;
            )+ }
        }

        #[cfg(test)]
        impl $crate::config::tests::describe::Schema for $name {
            fn schema(types: &mut $crate::config::tests::describe::Types) -> serde_json::Value {
                let about = concat!($($about),+);
                types.object(stringify!($name), about, |members| { $(
                    let default: &[&str] = &[$(stringify!($default))?];
                    members.add::<$type>($key, concat!($($what),+), default.is_empty());
                    $( members.limit($key, &$rule); )?
                )+ })
            }
        }
    };
    (@ $key:literal) => { $key };
    (@ $key:literal $default:expr) => { "" };
}
pub(crate) use members;

/// An enum with a word for each variant.
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

    /// The variant of a word, or what was expected.
    fn chosen(word: &str) -> Result<Self, String> {
        Self::named(word).ok_or_else(|| wrong(Self::NAMES.join(" or "), word))
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

        impl Default for $name {
            fn default() -> $name {
                <$name as $crate::config::members::Named>::ALL[0]
            }
        }

        $crate::config::members::leaf! {
            $name,
            format!("one of {}", <$name as $crate::config::members::Named>::NAMES.join(", ")),
            |text: String| $crate::config::members::Named::named(&text).ok_or(None)
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

/// Makes a type readable from a text. Arguments: the type, and an example of the text.
macro_rules! texts {
    ($type:ty, $example:literal) => {
        impl Default for $type {
            fn default() -> $type {
                <$type>::try_from($example.to_owned()).expect("an example is good")
            }
        }

        $crate::config::members::leaf! {
            $type,
            concat!("a text like \"", $example, "\"").to_owned(),
            |text: String| <$type>::try_from(text).map_err(Some)
        }
    };
}
pub(crate) use texts;

/// Makes a type readable from a text. Arguments: the type, what is expected, and how the text is read.
macro_rules! leaf {
    ($type:ty, $expected:expr, $read:expr) => {
        $crate::config::leaves::leaves!(
            $type,
            (),
            false,
            |(): &()| $expected,
            |(): &(), node: &$crate::config::Node| $read(node.text().ok_or(None)?),
            |_: &$type| String::new()
        );
    };
}
pub(crate) use leaf;

leaf!(Box<str>, "a text".to_owned(), |text: String| Ok(text.into()));
