-- Whether PostgreSQL knows a time zone of this name. The view pg_timezone_names reads hundreds of files for that.
CREATE FUNCTION weir_is_time_zone("name" text) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT AS $$
BEGIN
    PERFORM now() AT TIME ZONE "name";
    RETURN true;
EXCEPTION WHEN invalid_parameter_value THEN
    RETURN false;
END
$$;

-- As before, but serialised by a lock on the table: after waiting for an advisory lock PostgreSQL still believes what it
-- looked up in its catalogue cache before. This lock is the one that attaching takes; inserts go on.
CREATE OR REPLACE FUNCTION weir_ensure_usage_partition("at" timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    month_start timestamptz := date_trunc('month', "at", 'UTC');
    -- The month's end in UTC, whatever the zone of the connection.
    month_end timestamptz := ((month_start AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
    part_name text := 'usage_event_' || to_char(month_start AT TIME ZONE 'UTC', 'YYYY_MM');
BEGIN
    IF to_regclass(part_name) IS NOT NULL THEN
        RETURN;
    END IF;
    LOCK TABLE usage_event IN SHARE UPDATE EXCLUSIVE MODE;
    IF to_regclass(part_name) IS NOT NULL THEN
        RETURN;
    END IF;
    IF EXISTS (
        SELECT FROM usage_dropped_month WHERE month = (month_start AT TIME ZONE 'UTC')::date
    ) THEN
        RAISE EXCEPTION 'the month % has been dropped by retention', part_name USING ERRCODE = 'WE001';
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE usage_event INCLUDING ALL)', part_name);
    EXECUTE format(
        'ALTER TABLE usage_event ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
        part_name, month_start, month_end
    );
END
$$;

CREATE OR REPLACE FUNCTION weir_drop_usage_partition("at" timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    month_start timestamptz := date_trunc('month', "at", 'UTC');
    part_name text := 'usage_event_' || to_char(month_start AT TIME ZONE 'UTC', 'YYYY_MM');
BEGIN
    -- What the drop needs, taken first: a weaker lock that grows into this one could deadlock.
    LOCK TABLE usage_event IN ACCESS EXCLUSIVE MODE;
    INSERT INTO usage_dropped_month (month, dropped_at)
        VALUES ((month_start AT TIME ZONE 'UTC')::date, now())
        ON CONFLICT DO NOTHING;
    IF to_regclass(part_name) IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('DROP TABLE %I', part_name);
    RETURN true;
END
$$;
