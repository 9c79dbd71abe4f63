//! What clients make marketd hold: the sums that are compared with the limits on all clients together.

/// What a connection takes beside its buffers: table entries, and what the allocator keeps between buffers.
const CONNECTION_BYTES: u64 = 4096;

/// What all clients make marketd hold.
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

/// What one client makes marketd hold, as in [`HeldByClients`]. Each connection has one, so it is small.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeldByClient {
    /// In bytes, like the others.
    pub pending: u32,
    pub making: u32,
    pub streams: u32,
    pub requests: u32,
    /// True if it has a request in flight.
    pub is_busy: bool,
}

impl HeldByClient {
    /// A client that holds only unsent output and unanswered requests, of this many bytes.
    pub fn of_buffers(pending: usize, requests: usize) -> HeldByClient {
        HeldByClient {
            pending: small(pending),
            requests: small(requests),
            ..HeldByClient::default()
        }
    }
}

/// This number of bytes, or the greatest number of 32 bits if that is less.
pub fn small(bytes: usize) -> u32 {
    bytes.min(u32::MAX as usize) as u32
}

impl HeldByClients {
    /// All bytes. Each of the connections adds `CONNECTION_BYTES`.
    pub fn bytes(&self, connections: u64) -> u64 {
        let HeldByClients { pending, making, streams, requests, .. } = self;
        pending + making + streams + requests + connections * CONNECTION_BYTES
    }

    /// A client holds `now`, and held `before`.
    #[inline]
    pub fn replace(&mut self, before: HeldByClient, now: HeldByClient) {
        let change = |sum: u64, before: u32, now: u32| sum + u64::from(now) - u64::from(before);
        self.in_flight = change(self.in_flight, before.is_busy.into(), now.is_busy.into());
        self.pending = change(self.pending, before.pending, now.pending);
        self.making = change(self.making, before.making, now.making);
        self.streams = change(self.streams, before.streams, now.streams);
        self.requests = change(self.requests, before.requests, now.requests);
    }
}
