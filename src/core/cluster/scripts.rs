//! The scripts that run in the engine. Each does one thing, and no other command runs in between. Leases end
//! by the engine's own clock.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// The heartbeat of a run of a node. Arguments: run. Returns the time, and the runs with the time of
    /// their last sign of life.
    Beat,
    /// Looks at a lease. Takes it if it belongs to this run, or if it is free and `takes` is 1. Arguments:
    /// run, lease time, newest epoch that the node has seen, what it collects, how many sources it collects
    /// (-1 if it does not want this one), `takes`, 1 if it collects this one for itself.
    /// Returns whether it was taken, epoch, milliseconds that are left, where to read from, the newest entry,
    /// the version of the list, what is collected. Then, of the lease before: holder, and whether the holder
    /// has let go. An epoch that no node can have reached is as good as none. A holder of an earlier version
    /// told what was left of the budget (`left`): no later holder knows that.
    Look,
    /// Renews a lease, also one that has run out and that nobody has taken. Arguments: holder, epoch, lease
    /// time, what the holder collects.
    /// Returns 0 if the lease is not the holder's. Otherwise returns 1, a run that wants the source, how many
    /// sources that run collects, 1 if a node collects the source for itself.
    Renew,
    /// Adds an entry. Arguments: holder, epoch, entries that stay, bits for the first and the last entry of
    /// a poll, entry.
    Publish,
    /// Sets the market list. Arguments: holder, epoch, list.
    List,
    /// Lets a lease go, and adds an entry that says so. Arguments: holder, epoch, entries that stay, the
    /// run that gets the lease or nothing, lease time, entry.
    Release,
}

impl Script {
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Script::Beat => &["nodes"],
            Script::Publish | Script::Release => &["lease", "stream"],
            Script::Look | Script::Renew => &["lease", "stream", "ask", "list"],
            Script::List => &["lease", "list"],
        }
    }

    pub fn text(self) -> String {
        format!("{COMMON}{}", TEXTS[self as usize])
    }
}

/// What the scripts share: the engine's time in milliseconds, what a lease says, and whether it is this
/// node's. A script of a node that has a lease looks at its streams (`touch`): if the key of one holds
/// something else, the command fails. Keys that nobody renews for a day expire.
const COMMON: &str = "\
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function get(name) return redis.call('HGET', KEYS[1], name) or '' end
local function set(...) redis.call('HSET', KEYS[1], ...) end
local function text(ms) return string.format('%.0f', ms) end
local function is_mine()
  return get('holder') == ARGV[1] and get('epoch') == ARGV[2] and get('released') ~= '1'
end
local function touch()
  for at = 2, 3 do redis.call('XREVRANGE', KEYS[at], '+', '-', 'COUNT', 1) end
end
local function stay()
  for _, key in ipairs(KEYS) do redis.pcall('EXPIRE', key, 86400) end
end
";

const TEXTS: [&str; 6] = [
    "\
redis.call('ZADD', KEYS[1], text(now), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now - 600000))
redis.call('ZREMRANGEBYSCORE', KEYS[1], text(now + 1), '+inf')
stay()
return {text(now), redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 512)}",
    "\
local epoch, lease, held = tonumber(get('epoch')) or 0, tonumber(ARGV[2]), tonumber(ARGV[5])
local holder, released = get('holder'), tonumber(get('released')) or 0
local ms = (tonumber(get('until')) or 0) - now
if not (epoch >= 0 and epoch < 2^52) then epoch = 0 end
if released == 1 or ms <= 0 or ms > 2 * lease then ms = 0 end
local is_own = holder == ARGV[1] and released == 0
local takes = ms > 0 and is_own or ms == 0 and ARGV[6] == '1'
if takes then
  touch()
  if not is_own or epoch < tonumber(ARGV[3]) or epoch == 0 then
    epoch = math.max(epoch, tonumber(ARGV[3])) + 1
    redis.call('HDEL', KEYS[1], 'begin')
  end
  set('holder', ARGV[1], 'epoch', text(epoch), 'until', text(now + lease), 'released', 0, 'what', ARGV[4])
  redis.call('HDEL', KEYS[1], 'left')
elseif ms > 0 and get('what') == ARGV[4] then
  if ARGV[7] == '1' then set('alone_at', text(now)) end
  local is_late = now - (tonumber(get('want_at')) or 0) > lease / 2
  if held >= 0 and (is_late or get('want') == ARGV[1] or held < (tonumber(get('want_held')) or 0)) then
    set('want', ARGV[1], 'want_held', ARGV[5], 'want_at', text(now))
  end
end
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
last = last[1] and last[1][1] or '0-0'
return {takes and 1 or 0, text(epoch), ms, get('from'), last, get('list'), get('what'),
  holder, released}",
    "\
if not is_mine() then return 0 end
touch()
set('until', text(now + ARGV[3]), 'what', ARGV[4])
stay()
local is_alone = now - (tonumber(get('alone_at')) or 0) <= tonumber(ARGV[3]) and 1 or 0
local is_wanted = now - (tonumber(get('want_at')) or 0) <= ARGV[3] / 2
return {1, is_wanted and get('want') or '', get('want_held'), is_alone}",
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
set('released', 1)
if ARGV[4] ~= '' then
  set('holder', ARGV[4], 'released', 0, 'until', text(now + ARGV[5]))
  redis.call('HDEL', KEYS[1], 'want_at', 'begin')
  redis.call('HINCRBY', KEYS[1], 'epoch', 1)
end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], '*', 'e', ARGV[6])
return 1",
];
