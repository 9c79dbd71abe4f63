//! A forming candle: one that the exchange has not confirmed as closed.
//!
//! Owns its numbers, which follow the quotes until the exchange reports the candle, and its
//! rendered row. Ended candles stay here, as provisional ones, until the exchange confirms them.

use super::chunk::render;
use crate::decimal::Decimal;
use crate::record::Candle;
use std::cell::OnceCell;
use std::sync::Arc;

/// A candle that the exchange has not confirmed as closed.
#[derive(Clone, Debug)]
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

    /// The rendered row: `[t,o,h,l,c,v],`.
    pub(super) fn row(&self) -> &Arc<[u8]> {
        self.row.get_or_init(|| {
            let mut row = Vec::with_capacity(96);
            render(&self.candle, &mut row);
            row.into()
        })
    }
}

/// Applies a price to the candle. Returns true if that changed it.
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
