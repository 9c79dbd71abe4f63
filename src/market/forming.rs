//! A forming candle: one that the exchange has not confirmed as closed.
//!
//! Owns its numbers, which follow quotes until the exchange reports it, and its rendered row.

use super::chunk::render;
use crate::decimal::Decimal;
use crate::record::Candle;
use std::cell::OnceCell;
use std::sync::Arc;

/// A candle that is not confirmed as closed.
#[derive(Debug)]
pub(super) struct FormingCandle {
    pub(super) slot: i64,
    pub(super) candle: Candle,
    /// Rendered at the first read after a change.
    pub(super) row: OnceCell<Arc<[u8]>>,
}

impl FormingCandle {
    pub(super) fn new(slot: i64, candle: Candle) -> FormingCandle {
        let row = OnceCell::new();
        FormingCandle { slot, candle, row }
    }

    /// Its row: `[t,o,h,l,c,v],`.
    pub(super) fn row(&self) -> &Arc<[u8]> {
        self.row.get_or_init(|| {
            let mut row = Vec::with_capacity(96);
            render(&self.candle, &mut row);
            row.into()
        })
    }
}

/// Lets a candle follow a price; says whether that changed it.
pub(super) fn follow(candle: &mut Candle, price: &Decimal) -> bool {
    if candle.close == *price {
        return false;
    }
    if *price > candle.high {
        candle.high = price.clone();
    }
    if *price < candle.low {
        candle.low = price.clone();
    }
    candle.close = price.clone();
    true
}
