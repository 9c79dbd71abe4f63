-- A history file of version 1, as the release before version 2 of the tables wrote it (the demo exchange).
PRAGMA application_id = 1835758692; PRAGMA user_version = 1;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,               -- id of the source in the configuration
    symbol TEXT NOT NULL,               -- BTC/USDT
    interval TEXT NOT NULL,             -- 1m, 1h or 1d
    candles INTEGER NOT NULL DEFAULT 0, -- how many rows of candle belong to it
    UNIQUE (source, symbol, interval)
) STRICT;
INSERT INTO series VALUES(1,'demo','BTC/USDT','1m',5);
CREATE TABLE candle (
    series INTEGER NOT NULL, -- id of series
    time INTEGER NOT NULL,   -- begin of the candle, in seconds since 1970, UTC
    open TEXT NOT NULL,      -- quote asset per base, as the exchange wrote it
    high TEXT NOT NULL,
    low TEXT NOT NULL,
    close TEXT NOT NULL,
    volume TEXT NOT NULL,    -- base asset
    seal INTEGER NOT NULL,   -- of the row: one that was changed by hand is not believed
    PRIMARY KEY (series, time)
) STRICT, WITHOUT ROWID;
INSERT INTO candle VALUES(1,1795221180,'92294.93','92311.64','92284.52','92300.17','12.10064',5658346);
INSERT INTO candle VALUES(1,1795221240,'92300.17','92311.8','92275.81','92289.35','11.12506',7980255);
INSERT INTO candle VALUES(1,1795221300,'92289.35','92299.75','92243.06','92254.18','13.77348',-802762);
INSERT INTO candle VALUES(1,1795221360,'92254.18','92271.15','92241.32','92257.02','9.5422',8240744);
INSERT INTO candle VALUES(1,1795221420,'92257.02','92268.44','92247.06','92258.85','11.3078',-3170765);
CREATE TABLE span (
    series INTEGER NOT NULL, -- id of series
    first INTEGER NOT NULL,  -- begin of the first candle's time, in seconds since 1970, UTC
    until INTEGER NOT NULL,  -- end of the last candle's time
    seal INTEGER NOT NULL,
    PRIMARY KEY (series, first)
) STRICT, WITHOUT ROWID;
INSERT INTO span VALUES(1,1795221180,1795311180,1995190);
CREATE TABLE quote (
    source TEXT NOT NULL,
    symbol TEXT NOT NULL,
    last TEXT NOT NULL,
    bid TEXT,
    ask TEXT,
    bid_volume TEXT,
    ask_volume TEXT,
    open TEXT,                 -- of 24 hours, as all that follow
    high TEXT,
    low TEXT,
    change TEXT,
    percentage TEXT,
    base_volume TEXT,
    quote_volume TEXT,
    time INTEGER,              -- the exchange's own time, in milliseconds since 1970, UTC
    received INTEGER NOT NULL, -- when we got it
    seal INTEGER NOT NULL,
    PRIMARY KEY (source, symbol)
) STRICT, WITHOUT ROWID;
INSERT INTO quote VALUES('demo','BTC/USDT','92870.16','92870.15','92870.17','3.79583','5.18324','92321.69','93805.5','92148.37','548.47','0.594','14024.54752','1301947289.346648',1795311203000,1795311203544,-4862015);
CREATE VIEW candles AS
    SELECT source, symbol, interval, strftime('%Y-%m-%d %H:%M', time, 'unixepoch') AS time,
        open, high, low, close, volume
    FROM candle JOIN series ON series.id = candle.series;
CREATE VIEW coverage AS
    SELECT source, symbol, interval, strftime('%Y-%m-%d %H:%M', first, 'unixepoch') AS first,
        strftime('%Y-%m-%d %H:%M', until, 'unixepoch') AS until
    FROM span JOIN series ON series.id = span.series;
CREATE VIEW quotes AS
    SELECT source, symbol, last, bid, ask, high, low, percentage, base_volume, quote_volume,
        strftime('%Y-%m-%d %H:%M:%S', received / 1000, 'unixepoch') AS received
    FROM quote;
COMMIT;
