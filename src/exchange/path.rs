//! Paths: how a dialect's file names a place in a body.
//!
//! `data.list[]`: the elements of the array `list` in the object `data`. `result{}`: the members of
//! the object `result`. `data[0].ts`: the member `ts` of the first element of `data`. `result.*[]`:
//! the elements of any array in `result`. `.`: the whole body.

use super::json::{Cursor, MAX_DEPTH, Raw, Stop};
use crate::config::members::texts;
use crate::time::digits;
use std::fmt;

/// One step from a value to one inside it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The member of this name.
    Key(Box<str>),
    /// Any member (Kraken answers under its own name of a market).
    AnyKey,
    /// The element of this index, from 0.
    At(u16),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Key(key) => f.write_str(key),
            Step::AnyKey => f.write_str("*"),
            Step::At(index) => write!(f, "[{index}]"),
        }
    }
}

impl Step {
    /// True if this step leads to a member of this name.
    pub(super) fn is_to(&self, name: Raw<'_>) -> bool {
        match self {
            Step::Key(wanted) => name == Raw::Text(wanted.as_bytes()),
            Step::AnyKey => true,
            Step::At(_) => false,
        }
    }
}

/// The value at a path, or [`Raw::Absent`]. The bytes may end after this value.
pub(super) fn find<'a>(bytes: &'a [u8], path: &[Step]) -> Raw<'a> {
    let mut cursor = Cursor::new(bytes);
    for step in path {
        match enter(&mut cursor, step) {
            Ok(true) => {}
            Ok(false) | Err(_) => return Raw::Absent,
        }
    }
    cursor.value().unwrap_or(Raw::Absent)
}

/// Moves the cursor from a value to one inside it. Returns false if there is none.
fn enter(cursor: &mut Cursor<'_>, step: &Step) -> Result<bool, Stop> {
    let (open, close) = match step {
        Step::At(_) => (b'[', b']'),
        Step::Key(_) | Step::AnyKey => (b'{', b'}'),
    };
    cursor.pass(open, "a container")?;
    let (mut first, mut index) = (true, 0);
    while cursor.next(&mut first, close)? {
        match step {
            Step::At(wanted) if *wanted == index => return Ok(true),
            Step::At(_) => index = u16::saturating_add(index, 1),
            step if step.is_to(cursor.name()?) => return Ok(true),
            _ => {}
        }
        cursor.value()?;
    }
    Ok(false)
}

/// The steps from a value to one inside it.
pub(super) struct Path(Vec<Step>);

impl std::ops::Deref for Path {
    type Target = [Step];

    fn deref(&self) -> &[Step] {
        &self.0
    }
}

/// Where the items of a body are.
pub(super) struct Place {
    /// From the body's top to what holds the items.
    pub(super) path: Path,
    /// What holds them.
    pub(super) form: Form,
}

/// What the value at the path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An array; its elements are the items.
    Elements,
    /// An object; its members are the items, names included.
    Members,
    /// The one item itself. It stays in the envelope, because a small body needs no slices.
    Itself,
}

impl Place {
    /// Passes the name of the item at the cursor, if it has one.
    pub(super) fn name_of<'a>(&self, item: &mut Cursor<'a>) -> Result<Raw<'a>, Stop> {
        match self.form {
            Form::Members => item.name(),
            Form::Elements | Form::Itself => Ok(Raw::Absent),
        }
    }
}

texts!(Path, "data.list");
texts!(Place, "data.list{}");

impl TryFrom<String> for Path {
    type Error = String;

    fn try_from(text: String) -> Result<Path, String> {
        let wrong = || format!("expected a path like \"data.list\" or \".\", found {text:?}");
        let mut steps = Vec::new();
        if text != "." {
            for (at, part) in text.split('.').enumerate() {
                let (name, indexes) = part.split_at(part.find('[').unwrap_or(part.len()));
                match name {
                    "" if at == 0 && !indexes.is_empty() => {}
                    "*" => steps.push(Step::AnyKey),
                    name if name.is_empty() || name.contains(['[', ']', '{', '}']) => {
                        return Err(wrong());
                    }
                    name => steps.push(Step::Key(name.into())),
                }
                for index in indexes.split_inclusive(']') {
                    let inner = index.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
                    let index = inner.and_then(|it| digits(it.as_bytes()));
                    steps.push(Step::At(index.ok_or_else(wrong)?));
                }
            }
        }
        if steps.len() < MAX_DEPTH {
            Ok(Path(steps))
        } else {
            Err(format!("expected fewer than {MAX_DEPTH} steps"))
        }
    }
}

impl TryFrom<String> for Place {
    type Error = String;

    fn try_from(text: String) -> Result<Place, String> {
        let (path, form) = match (text.strip_suffix("[]"), text.strip_suffix("{}")) {
            (Some(path), _) => (path, Form::Elements),
            (_, Some(path)) => (path, Form::Members),
            _ => (&*text, Form::Itself),
        };
        let path = match path {
            "" if form != Form::Itself => ".",
            path => path,
        };
        let path = Path::try_from(path.to_owned())?;
        Ok(Place { path, form })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Step::{AnyKey, At};

    #[expect(non_upper_case_globals, reason = "it stands for a variant")]
    const First: Step = At(0);

    #[test]
    fn a_text_becomes_steps_and_a_form() {
        let key = |name: &str| Step::Key(name.into());
        let check = |text: &str, steps: &[Step], form| {
            let place = Place::try_from(text.to_owned()).expect(text);
            assert_eq!((&*place.path, place.form), (steps, form), "{text}");
        };
        check(".", &[], Form::Itself);
        check("[]", &[], Form::Elements);
        check("{}", &[], Form::Members);
        check("data[]", &[key("data")], Form::Elements);
        check("result.*[]", &[key("result"), AnyKey], Form::Elements);
        check("[0].ts", &[First, key("ts")], Form::Itself);
        check("a[0][0].b{}", &[key("a"), First, First, key("b")], Form::Members);
        check("a[0][]", &[key("a"), First], Form::Elements);
        check("[1]", &[At(1)], Form::Itself);
        check("x[12][3].y[]", &[key("x"), At(12), At(3), key("y")], Form::Elements);
        let deep = ["a"; MAX_DEPTH].join(".");
        for wrong in [
            "", "..", "a.", ".a", "a[-1]", "a[+1]", "a[x]", "a[65536]", "a[0]b", "a[].b", "[0",
            "a{}{}", &deep,
        ] {
            assert!(Place::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_path_leads_into_a_value_even_before_its_end() {
        let text = br#"{"code":"0","data":[{"ts":"15","x":[]},{"ts":"16"}],"last":"cut"#;
        let check = |path: &[Step], expected: Raw<'_>| assert_eq!(find(text, path), expected);
        #[expect(non_snake_case, reason = "it stands for the variant")]
        let Key = |name: &str| Step::Key(name.into());
        check(&[Key("code")], Raw::Text(b"0"));
        check(&[AnyKey], Raw::Text(b"0"));
        check(&[Key("data"), First, Key("ts")], Raw::Text(b"15"));
        check(&[Key("data"), First, Key("x")], Raw::Array(b"[]"));
        check(&[Key("data"), First, Key("x"), First], Raw::Absent);
        check(&[Key("data"), Key("ts")], Raw::Absent);
        check(&[Key("data"), At(1), Key("ts")], Raw::Text(b"16"));
        check(&[Key("data"), At(2)], Raw::Absent);
        check(&[First], Raw::Absent);
        check(&[Key("last")], Raw::Absent);
        check(&[Key("none")], Raw::Absent);
        check(&[], Raw::Absent);
    }
}
