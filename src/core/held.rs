//! What clients make marketd hold: the sums that the limits on all of them together are compared with.

/// What a connection takes beside its buffers: table entries, and what the allocator keeps between buffers.
const CONNECTION_BYTES: u64 = 4096;

/// What one client makes marketd hold, or all of them together.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeldByClients {
    /// Requests whose response is not completely sent.
    pub in_flight: u64,
    /// Bytes of responses that are not sent.
    pub pending: u64,
    /// Bytes that responses hold while they are made in parts.
    pub making: u64,
    /// Bytes that streams hold beside what is not sent.
    pub streams: u64,
    /// Bytes of requests that are not answered.
    pub requests: u64,
}

impl HeldByClients {
    /// All bytes, with those of so many connections.
    pub fn bytes(&self, connections: u64) -> u64 {
        let HeldByClients { pending, making, streams, requests, .. } = self;
        pending + making + streams + requests + connections * CONNECTION_BYTES
    }

    /// One client holds this much now, and so much before.
    #[inline]
    pub fn replace(&mut self, before: HeldByClients, now: HeldByClients) {
        self.in_flight = self.in_flight + now.in_flight - before.in_flight;
        self.pending = self.pending + now.pending - before.pending;
        self.making = self.making + now.making - before.making;
        self.streams = self.streams + now.streams - before.streams;
        self.requests = self.requests + now.requests - before.requests;
    }
}
