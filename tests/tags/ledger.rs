//! What each tag of each address has stood for, for ever.

use crate::tags::world::Answered;
use std::collections::BTreeMap;

/// Bodies by address and tag. See the module's page.
#[derive(Default)]
pub struct Ledger {
    bodies: BTreeMap<(String, String), Vec<u8>>,
    pub seen: Seen,
}

/// How often it was looked at.
#[derive(Debug, Default)]
pub struct Seen {
    pub bodies: usize,
    pub again: usize,
    pub not_modified: usize,
    pub packed: usize,
}

impl Ledger {
    /// Takes note of a response. The error says what is wrong with its tag.
    pub fn enter(&mut self, answered: &Answered) -> Result<(), String> {
        let target = &answered.asked.target;
        let tag = answered.field("ETag").map(str::to_string);
        let what = |why: &str| format!("{target} {tag:?}: {why}");
        let Some(tag) = tag.clone() else {
            return match answered.status {
                200 | 304 => Err(what("no tag")),
                _ => Ok(()),
            };
        };
        let key = (target.clone(), tag.clone());
        if answered.status == 304 {
            self.seen.not_modified += 1;
            let named = answered.asked.has.as_deref() == Some(tag.as_str());
            return match named && self.bodies.contains_key(&key) {
                true => Ok(()),
                false => Err(what("a 304 for a tag that was never given")),
            };
        }
        if answered.status != 200 {
            return Err(what("an error has a tag"));
        }
        if answered.asked.head_only {
            let length = answered.field("Content-Length").and_then(|it| it.parse().ok());
            let known = self.bodies.get(&key).map(Vec::len);
            return match known.is_none() || known == length {
                true => Ok(()),
                false => Err(what("HEAD tells another length")),
            };
        }
        self.seen.packed += usize::from(answered.field("Content-Encoding").is_some());
        let body = &answered.body;
        match self.bodies.get(&key) {
            Some(before) if before == body => self.seen.again += 1,
            Some(before) => {
                let (before, body) = (before.escape_ascii(), body.escape_ascii());
                return Err(what(&format!("stood for\n{before}\nand now for\n{body}")));
            }
            None => {
                self.seen.bodies += 1;
                self.bodies.insert(key, body.clone());
            }
        }
        Ok(())
    }

    /// A tag that this address has had, if any.
    pub fn tag_of(&self, target: &str, at: u64) -> Option<String> {
        let first = (target.to_string(), String::new());
        let of_it = self.bodies.range(first..);
        let tags: Vec<&String> =
            (of_it.take_while(|((of, _), _)| of == target)).map(|((_, tag), _)| tag).collect();
        let at = at.checked_rem(tags.len() as u64)?;
        Some(tags[at as usize].clone())
    }
}
