//! How far a stream has come, as the ids of its events say.

use crate::time::UnixMs;

/// Everything up to here was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The version of all quotes.
    pub quotes: u64,
    /// How often the health of the service had changed.
    pub health: u64,
    /// The newest closed candle of each chart.
    pub closes: Vec<Option<UnixMs>>,
}

/// Charts have candles of whole minutes.
const MINUTE_MS: i64 = 60_000;

impl Position {
    /// Appends it as an id: hexadecimal numbers, of which the first is that of the run.
    pub fn write(&self, boot: u64, out: &mut Vec<u8>) {
        let mut id = format!("id: {boot:x}-{:x}-{:x}", self.quotes, self.health);
        for close in &self.closes {
            id.push('-');
            if let Some(open) = close {
                id.push_str(&format!("{:x}", open.0 / MINUTE_MS));
            }
        }
        id.push('\n');
        out.extend_from_slice(id.as_bytes());
    }

    /// Reads an id back. `None` if it is of another run, or of a stream with another number of charts.
    pub fn read(id: &[u8], boot: u64, charts: usize) -> Option<Position> {
        let mut parts = str::from_utf8(id).ok()?.split('-');
        let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
        let (run, quotes, health) = (number()?, number()?, number()?);
        let close = |part: &str| match part {
            "" => Some(None),
            part => {
                let minutes = i64::from_str_radix(part, 16).ok()?;
                Some(Some(UnixMs(minutes.checked_mul(MINUTE_MS)?)))
            }
        };
        let closes: Option<Vec<Option<UnixMs>>> = parts.map(close).collect();
        let closes = closes.filter(|closes| closes.len() == charts && run == boot)?;
        Some(Position { quotes, health, closes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_back_from_its_id_in_the_same_run_alone() {
        let position =
            Position { quotes: 0x1f, health: 2, closes: vec![Some(UnixMs(60_000 * 0x1b8)), None] };
        let mut out = Vec::new();
        position.write(0xabc, &mut out);
        assert_eq!(out, b"id: abc-1f-2-1b8-\n");
        let id = &out[4..out.len() - 1];
        assert_eq!(Position::read(id, 0xabc, 2), Some(position));
        assert_eq!(Position::read(id, 0xabd, 2), None, "another run");
        assert_eq!(Position::read(id, 0xabc, 1), None, "another stream");
        for id in [&b""[..], b"abc", b"abc-1-", b"abc-1-2-x", b"\xff", b"abc-1-2--7fffffffffffffff"]
        {
            for charts in 0..3 {
                assert_eq!(Position::read(id, 0xabc, charts), None, "{id:?}");
            }
        }
    }
}
