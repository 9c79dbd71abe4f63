//! What each tag of each address has stood for, for ever.

use crate::tags::world::Asked;
use crate::virtual_time::Answer;
use std::collections::BTreeMap;

/// Bodies by address and tag. See the module's page.
#[derive(Default)]
pub struct Ledger {
    bodies: BTreeMap<(String, String), Answer>,
    pub seen: Seen,
}

/// How often it was looked at.
#[derive(Debug, Default)]
pub struct Seen {
    pub bodies: usize,
    pub again: usize,
    pub not_modified: usize,
}

impl Ledger {
    /// Takes note of a response. The error says what is wrong with its tag.
    pub fn enter(&mut self, asked: &Asked, answer: Answer) -> Result<(), String> {
        let target = &asked.target;
        let tag = answer.header("ETag").to_string();
        let what = |why: &str| format!("{target} {tag:?}: {why}");
        if tag.is_empty() {
            return match answer.status {
                200 | 304 => Err(what("no tag")),
                _ => Ok(()),
            };
        }
        let key = (target.clone(), tag.clone());
        if answer.status == 304 {
            self.seen.not_modified += 1;
            let named = asked.has.as_deref() == Some(tag.as_str());
            return match named && self.bodies.contains_key(&key) {
                true => Ok(()),
                false => Err(what("a 304 for a tag that was never given")),
            };
        }
        if answer.status != 200 {
            return Err(what("an error has a tag"));
        }
        if asked.head_only {
            let length = answer.header("Content-Length").parse().ok();
            let known = self.bodies.get(&key).map(|it| it.length);
            return match known.is_none() || known == length {
                true => Ok(()),
                false => Err(what("HEAD tells another length")),
            };
        }
        match self.bodies.get(&key) {
            Some(before) if (&before.body, before.length) == (&answer.body, answer.length) => {
                self.seen.again += 1;
            }
            Some(before) => {
                let (before, body) = (&before.body, &answer.body);
                return Err(what(&format!("stood for\n{before}\nand now for\n{body}")));
            }
            None => {
                self.seen.bodies += 1;
                self.bodies.insert(key, answer);
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
