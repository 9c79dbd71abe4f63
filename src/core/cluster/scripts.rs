//! The scripts that run in the engine. Each does one thing, all of it or nothing. Leases end by the engine's
//! own clock.

/// How long a lease lasts without a renewal.
pub const LEASE_MS: u64 = 3000;

/// One of the scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Tells that a run of a node lives. Arguments: run, milliseconds until it counts as gone.
    /// Returns the time and the runs that live, by the time of their last sign of life.
    Beat,
    /// Looks at a lease. Arguments: lease time.
    /// Returns epoch, holder, milliseconds that are left, where to read from, the newest entry, the version
    /// of the list.
    Look,
    /// Takes a free lease. Arguments: holder, lease time, newest epoch that the node has seen.
    /// Returns 1, epoch, the holder before, whether that one has let go, what it has left of the budget, and
    /// for how long; or 0, epoch.
    Acquire,
    /// Renews a lease, also one that has run out and that nobody has taken. Arguments: holder, epoch, lease
    /// time, what is left of the budget.
    Renew,
    /// Adds an entry. Arguments: holder, epoch, entries that stay, bits for the first and the last entry of
    /// a poll, entry.
    Publish,
    /// Sets the market list. Arguments: holder, epoch, list.
    List,
    /// Lets a lease go, and tells so. Arguments: holder, epoch, what is left of the budget, entries that
    /// stay, entry.
    Release,
}

impl Script {
    /// All of them, in the order of their numbers.
    pub const ALL: [Script; 7] = [
        Script::Beat,
        Script::Look,
        Script::Acquire,
        Script::Renew,
        Script::Publish,
        Script::List,
        Script::Release,
    ];

    /// Its keys.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Script::Beat => &["nodes"],
            Script::Acquire | Script::Renew => &["lease"],
            Script::Look | Script::Publish | Script::Release => &["lease", "stream"],
            Script::List => &["lease", "list"],
        }
    }

    /// Its text.
    pub fn text(self) -> String {
        format!("{COMMON}{}", TEXTS[self as usize])
    }
}

/// The engine's time in milliseconds; what a lease says; whether it is this node's.
const COMMON: &str = "\
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function get(name) return redis.call('HGET', KEYS[1], name) or '' end
local function set(...) redis.call('HSET', KEYS[1], ...) end
local function left(lease)
  local ms = (tonumber(get('until')) or 0) - now
  if get('released') == '1' or ms <= 0 or ms > 2 * lease then return 0 end
  return ms
end
local function is_mine()
  return get('holder') == ARGV[1] and get('epoch') == ARGV[2] and get('released') ~= '1'
end
local function text(ms) return string.format('%.0f', ms) end
";

const TEXTS: [&str; 7] = [
    "\
redis.call('ZADD', KEYS[1], text(now), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now - 20 * ARGV[2]))
local live = redis.call('ZRANGEBYSCORE', KEYS[1], text(now - ARGV[2]), text(now + ARGV[2]), 'LIMIT', 0, 256)
return {text(now), live}",
    "\
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
last = last[1] and last[1][1] or '0-0'
return {get('epoch'), get('holder'), left(tonumber(ARGV[1])), get('from'), last, get('list')}",
    "\
local epoch, holder = tonumber(get('epoch')) or 0, get('holder')
local lease = tonumber(ARGV[2])
if left(lease) > 0 and holder ~= ARGV[1] then return {0, text(epoch)} end
if holder == ARGV[1] and get('released') ~= '1' then
  set('until', text(now + lease))
  return {1, text(epoch), '', 0, '', 0}
end
local was = {holder, tonumber(get('released')) or 0, get('left'), now - (tonumber(get('at')) or now)}
epoch = math.max(epoch, tonumber(ARGV[3])) + 1
set('holder', ARGV[1], 'epoch', text(epoch), 'until', text(now + lease), 'released', 0)
set('left', 0, 'at', text(now))
redis.call('HDEL', KEYS[1], 'begin')
return {1, text(epoch), was[1], was[2], was[3], text(was[4])}",
    "\
if not is_mine() then return 0 end
set('until', text(now + ARGV[3]), 'left', ARGV[4], 'at', text(now))
return 1",
    "\
if not is_mine() or (tonumber(get('until')) or 0) <= now then return false end
local id = redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], '*', 'e', ARGV[5])
local mark = tonumber(ARGV[4])
if mark % 2 == 1 then set('begin', id) end
if mark >= 2 and get('begin') ~= '' then set('from', get('begin')) end
return id",
    "\
if not is_mine() then return false end
redis.call('SET', KEYS[2], ARGV[3])
return redis.call('HINCRBY', KEYS[1], 'list', 1)",
    "\
if not is_mine() then return 0 end
set('released', 1, 'left', ARGV[3], 'at', text(now))
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[4], '*', 'e', ARGV[5])
return 1",
];
