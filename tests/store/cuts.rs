//! The power goes, at any moment: what was synced is there, of what was not, any part may be.
//!
//! A run under the layer of `faults.c` writes down every change that reached the files, every sync,
//! and what was acknowledged when. From that, the disk as it may be after a cut is put together: the
//! content of each file at its last sync, and of the sectors written since, any. Names are as at
//! the last sync of their directory, and of the changes since, the first so many.

use super::bench::Bench;
use super::child::{Child, Task};
use super::faults::layer;
use super::support::chance::Note;
use super::support::daemon::TempDir;
use super::world;
use crate::support::{Rng, for_each_seed};
use std::collections::BTreeMap;
use std::path::Path;

/// Batches of the run.
const BATCHES: u64 = 4;

/// A disk writes so much whole, or not at all.
const SECTOR: usize = 512;

/// One line of the trace.
#[derive(Debug)]
enum Record {
    Create(String),
    Write(String, usize, Vec<u8>),
    Truncate(String, usize),
    Sync(String),
    SyncNames,
    Rename(String, String),
    Unlink(String),
    /// So many batches have been acknowledged.
    Acknowledged(u64),
}

/// A file, whatever its name.
#[derive(Clone, Debug, Default)]
struct File {
    synced: Vec<u8>,
    /// Writes and truncations since.
    since: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

/// What is on the disk, and what is still on its way.
#[derive(Clone, Debug, Default)]
struct Disk {
    files: Vec<File>,
    /// Names as the process sees them.
    names: BTreeMap<String, usize>,
    /// Names at the last sync of the directory, and after each change since.
    synced: BTreeMap<String, usize>,
    since: Vec<BTreeMap<String, usize>>,
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Change::Write(offset, bytes) => write(content, *offset, bytes),
            Change::Truncate(length) => content.resize(*length, 0),
        }
    }
}

fn write(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

impl File {
    /// Its content after a cut: `chance` decides for each sector.
    fn cut(&self, mut chance: impl FnMut() -> bool) -> Vec<u8> {
        let mut content = self.synced.clone();
        for change in &self.since {
            match change {
                Change::Write(offset, bytes) => {
                    let mut at = 0;
                    while at < bytes.len() {
                        // Sectors lie where the disk has them, not where a write begins.
                        let end = bytes.len().min(at + SECTOR - (offset + at) % SECTOR);
                        if chance() {
                            write(&mut content, offset + at, &bytes[at..end]);
                        }
                        at = end;
                    }
                }
                Change::Truncate(length) if chance() => content.resize(*length, 0),
                Change::Truncate(_) => {}
            }
        }
        content
    }
}

impl Disk {
    fn file(&mut self, name: &str) -> &mut File {
        let file = self.names.get(name).copied();
        let file = file.unwrap_or_else(|| panic!("{name} was never made"));
        &mut self.files[file]
    }

    fn apply(&mut self, record: &Record) {
        match record {
            Record::Create(name) if self.names.contains_key(name) => {}
            Record::Create(name) => {
                self.files.push(File::default());
                self.names.insert(name.clone(), self.files.len() - 1);
                self.since.push(self.names.clone());
            }
            Record::Write(name, offset, bytes) => {
                let change = Change::Write(*offset, bytes.clone());
                self.file(name).since.push(change);
            }
            Record::Truncate(name, length) => {
                self.file(name).since.push(Change::Truncate(*length));
            }
            Record::Sync(name) => {
                let file = self.file(name);
                for change in std::mem::take(&mut file.since) {
                    change.apply(&mut file.synced);
                }
            }
            Record::SyncNames => {
                self.synced.clone_from(&self.names);
                self.since.clear();
            }
            Record::Rename(from, to) => {
                let file = self.names.remove(from).expect("it was made");
                self.names.insert(to.clone(), file);
                self.since.push(self.names.clone());
            }
            Record::Unlink(name) => {
                self.names.remove(name);
                self.since.push(self.names.clone());
            }
            Record::Acknowledged(_) => {}
        }
    }

    /// Puts the disk after a cut into a directory.
    fn cut(&self, rng: Option<&mut Rng>, into: &Path) {
        let mut rng = rng;
        let names = match &mut rng {
            Some(rng) => match rng.below(self.since.len() as u64 + 1) as usize {
                0 => &self.synced,
                changes => &self.since[changes - 1],
            },
            None => &self.synced,
        };
        for (name, file) in names {
            let content =
                self.files[*file].cut(|| rng.as_mut().is_some_and(|rng| rng.chance(1, 2)));
            let name = Path::new(name).file_name().expect("a path of the tests has a name");
            std::fs::write(into.join(name), content).expect("a directory of ours");
        }
    }
}

/// Runs a child, and reads what the layer wrote down.
fn record(layer: &Path) -> Vec<Record> {
    let dir = TempDir::in_memory();
    let path = dir.history();
    let trace = dir.path().join("trace");
    let task = Task { path: &path, from: 0, to: BATCHES, all: true };
    let child = Child::start(task, |command| {
        command.env("LD_PRELOAD", layer).env("FAULTS_PATH", &path).env("FAULTS_TRACE", &trace);
    });
    let (said, status) = child.end();
    assert!(status.success(), "{said:?}");
    parse(&std::fs::read(trace).expect("the layer wrote it"))
}

fn parse(mut trace: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    while !trace.is_empty() {
        let (head, rest) = trace.split_at(17);
        let number =
            |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let offset = u64::from_le_bytes(head[9..17].try_into().expect("eight bytes")) as usize;
        let (name, rest) = rest.split_at(number(1) as usize);
        let (bytes, rest) = rest.split_at(number(5) as usize);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        trace = rest;
        records.push(match head[0] {
            b'c' => Record::Create(text(name)),
            b'w' => Record::Write(text(name), offset, bytes.to_vec()),
            b't' => Record::Truncate(text(name), offset),
            b'f' => Record::Sync(text(name)),
            b'd' => Record::SyncNames,
            b'r' => Record::Rename(text(name), text(bytes)),
            b'u' => Record::Unlink(text(name)),
            b's' => match text(bytes).split_once("@ written ") {
                Some((_, number)) => {
                    Record::Acknowledged(number.trim().parse::<u64>().expect("a number") + 1)
                }
                None => continue,
            },
            other => panic!("the layer wrote {other}"),
        });
    }
    records
}

#[test]
fn a_cut_of_power_costs_nothing_that_was_acknowledged() {
    let Some(layer) = layer() else { return };
    let records = record(layer);
    let syncs = records.iter().filter(|record| matches!(record, Record::Sync(_)));
    assert!(syncs.count() > 10);
    for_each_seed(1, |_, rng| {
        let (mut disk, mut acknowledged) = (Disk::default(), 0);
        for (at, record) in records.iter().enumerate() {
            disk.apply(record);
            match record {
                Record::Acknowledged(batches) => acknowledged = *batches,
                // A cut between two changes to one file looks like one before or behind both.
                Record::Write(..) if at % 3 > 0 => continue,
                _ => {}
            }
            for all_lost in [true, false] {
                let dir = TempDir::in_memory();
                let chance = if all_lost { None } else { Some(&mut *rng) };
                disk.cut(chance, dir.path());
                let note = Note(format!("cut after record {at}: {:.200}", format!("{record:?}")));
                let mut bench = Bench::open(&dir.history());
                world::check(&mut bench, acknowledged..=acknowledged + 1);
                drop(note);
            }
        }
        assert_eq!(acknowledged, BATCHES);
    });
}
