//! Charts of several markets in one response. For each symbol, it has what the `Chart-` fields say of one
//! chart, and the candles.
//!
//! Each chart is made as if it were requested alone. All charts wait for their candles together.

use super::request::{ChartRequest, ChartsRequest};
use super::response::coverage;
use super::{ChartResponse, choose};
use crate::core::api::body::Body;
use crate::core::api::outcome::{Advance, Deferred, InParts, Outcome, Prepared, SeriesSlots};
use crate::core::api::records::write_item_error;
use crate::core::api::view::{View, look_up};
use crate::core::compressed_cache::CacheKey;
use crate::fingerprint::Part;
use crate::http::{Head, Responder};
use crate::json::{Decimals, Object, Ready, members};
use crate::market::{ChartBody, ChartSpec, SeriesKey};

/// Charts of one step, if their candles are only copied. It ends earlier once a part of the body is full.
const CHARTS_A_STEP: usize = 8;

/// Charts that wait for candles, or are made.
struct DeferredCharts {
    charts: Vec<ChartResponse>,
    spec: ChartSpec,
    /// True if the charts wait for candles that are not in memory.
    waits: bool,
    /// The items of the member `errors`, joined.
    errors: Vec<u8>,
    /// True if all charts that are done are complete.
    are_complete: bool,
    /// How many charts are done.
    at: usize,
    body: Body,
}

impl Prepared for ChartsRequest {
    fn respond(&self, view: &View<'_>, _: &mut Responder<'_>) -> Outcome {
        let mut charts = Vec::with_capacity(self.markets.len());
        let mut errors = Vec::new();
        for (name, symbol) in &self.markets {
            let symbol = symbol.map_or_else(|| look_up(view, name), Ok);
            let chosen = symbol.and_then(|symbol| {
                let request = ChartRequest { symbol, spec: self.spec.clone(), source: self.source };
                let key = choose(view, &request)?;
                Ok(ChartResponse::new(view, request, key))
            });
            match chosen {
                Ok(chart) => charts.push(chart),
                Err(error) => write_item_error(&mut errors, name, &error),
            }
        }
        let (spec, waits, mut body) = (self.spec.clone(), self.waits, Body::default());
        body.fixed(b"{");
        let deferred =
            DeferredCharts { charts, spec, waits, errors, are_complete: true, at: 0, body };
        Ok(Some(Deferred::InParts(Box::new(deferred))))
    }
}

impl DeferredCharts {
    /// Writes the chart that is done.
    fn write(&mut self, view: &View<'_>) {
        let chart = &mut self.charts[self.at];
        let name = view.market.catalog.name(chart.request.symbol).as_str();
        let Some(chart_body) = chart.body.take() else {
            return write_item_error(&mut self.errors, name.as_bytes(), &chart.error(view));
        };
        let info = &chart_body.info;
        self.are_complete &= info.complete;
        let mut said = Vec::with_capacity(128);
        let mut member = Object::open(&mut said);
        let mut object = member.object(name);
        members!(object,
            "coverage": coverage(info),
            "source": view.id_of(chart.key.source),
            "lastClosed": info.last_closed,
            "gaps": info.gaps,
            "next": info.next_from,
            "candles": Ready(b""),
        );
        // The body already has the opening brace of the whole object.
        self.body.text(&said[1..]);
        let made_of = chart_body.made_of.number().to_le_bytes();
        chart_body.write(self.body.part(Part::Text(&made_of)));
        self.body.fixed(b"},");
    }
}

impl InParts for DeferredCharts {
    fn needs(&self) -> Vec<SeriesSlots> {
        let charts = self.charts[self.at..].iter().filter(|_| self.waits);
        charts.flat_map(InParts::needs).collect()
    }

    fn missing(&self, view: &View<'_>) -> Vec<SeriesSlots> {
        let charts = self.charts[self.at..].iter().filter(|_| self.waits);
        charts.flat_map(|chart| chart.missing(view)).collect()
    }

    fn choose_again(&mut self, view: &View<'_>) {
        self.charts[self.at..].iter_mut().for_each(|chart| chart.choose_again(view));
    }

    fn held(&self) -> usize {
        let charts = self.charts.iter().map(InParts::held);
        charts.sum::<usize>() + self.errors.capacity() + self.body.held()
    }

    fn step(&mut self, view: &View<'_>) -> Advance {
        for _ in 0..CHARTS_A_STEP {
            let Some(chart) = self.charts.get_mut(self.at) else {
                return Advance::Done;
            };
            match chart.step(view) {
                Advance::Waits if self.waits || chart.body.is_none() => return Advance::Waits,
                Advance::More => return Advance::More,
                _ => self.write(view),
            }
            self.at += 1;
            if self.body.cut() || !ChartBody::fits(&self.spec) {
                break;
            }
        }
        if self.at == self.charts.len() { Advance::Done } else { Advance::More }
    }

    fn finish(self: Box<Self>, view: &View<'_>, responder: &mut Responder<'_>) -> Option<Deferred> {
        let DeferredCharts { charts, spec, errors, are_complete, mut body, .. } = *self;
        body.fixed(b"\"errors\":[");
        body.text(&errors);
        body.fixed(b"]}");
        let variant = Decimals::quoted_if(spec.quoted).variant();
        let fields = format!("Chart-Interval: {}\r\n", spec.interval.name());
        let cache = view.until_candles(charts.iter().map(|chart| chart.key.source), are_complete);
        let head = Head { fields: fields.as_bytes(), ..Head::json(None, cache) };
        let series: Vec<SeriesKey> = charts.iter().map(|chart| chart.key).collect();
        let key = CacheKey::new("/api/ecosystem/chart", (series, &spec, &errors));
        body.send(view, responder, head, variant, key)
    }
}
