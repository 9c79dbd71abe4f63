//! What comes of a request: a response that is sent, or one that takes more than this turn.

use super::packed::{Packed, ToPack};
use super::view::View;
use crate::http::Responder;
use crate::market::SeriesKey;
use std::ops::Range;
use std::sync::Arc;

/// What came of a request.
pub enum Outcome {
    /// It is answered.
    Answered,
    /// Its response is made in parts.
    Later(Box<dyn Long>),
    /// Its response is packed before it is sent.
    Pack(Box<ToPack>),
}

impl From<Option<ToPack>> for Outcome {
    /// What is not handed back has been sent.
    fn from(to_pack: Option<ToPack>) -> Outcome {
        to_pack.map_or(Outcome::Answered, |it| Outcome::Pack(Box::new(it)))
    }
}

/// A response that is made in parts.
pub trait Long {
    /// The candles that it waits for: of which series, which slots.
    fn wants(&self) -> Option<(SeriesKey, Range<i64>)> {
        None
    }

    /// The candles that are to be there while it is made.
    fn needs(&self) -> Option<(SeriesKey, Range<i64>)> {
        None
    }

    /// Those that it waits for and that have not come yet.
    fn lacks(&self, _view: &View<'_>) -> Option<(SeriesKey, Range<i64>)> {
        None
    }

    /// Its body has been packed. `false`: it does not wait for that.
    fn packed(&mut self, _bytes: &Arc<[u8]>) -> bool {
        false
    }

    /// Makes one part. `true`: that was the last one.
    fn step(&mut self, view: &View<'_>) -> bool;

    /// Sends what was made, unless it is to be packed first.
    fn finish(self: Box<Self>, view: &View<'_>, responder: &mut Responder<'_>) -> Option<ToPack>;
}

/// A response whose body is being packed.
impl Long for Packed {
    fn packed(&mut self, bytes: &Arc<[u8]>) -> bool {
        self.ready(bytes);
        true
    }

    fn step(&mut self, _view: &View<'_>) -> bool {
        self.is_ready()
    }

    fn finish(self: Box<Self>, _view: &View<'_>, responder: &mut Responder<'_>) -> Option<ToPack> {
        self.send(responder);
        None
    }
}
