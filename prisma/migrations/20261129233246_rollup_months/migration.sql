-- CreateTable
CREATE TABLE "usage_rollup_month" (
    "enterprise_id" UUID NOT NULL,
    "month" DATE NOT NULL,
    "series_id" INTEGER NOT NULL,
    "requests" BIGINT NOT NULL,
    "retries" BIGINT NOT NULL,
    "estimated" BIGINT NOT NULL,
    "input_tokens" BIGINT NOT NULL,
    "cached_input_tokens" BIGINT NOT NULL,
    "cache_write_tokens" BIGINT NOT NULL,
    "audio_input_tokens" BIGINT NOT NULL,
    "image_input_tokens" BIGINT NOT NULL,
    "output_tokens" BIGINT NOT NULL,
    "reasoning_tokens" BIGINT NOT NULL,
    "audio_output_tokens" BIGINT NOT NULL,
    "cost_pico" DECIMAL(38,0) NOT NULL,
    "cost_nano" DECIMAL(38,0) NOT NULL,

    CONSTRAINT "usage_rollup_month_pkey" PRIMARY KEY ("enterprise_id","month","series_id")
);

-- ── What Prisma's schema cannot say ────────────────────────────────────────────────────────────────────────────

ALTER TABLE "usage_rollup_month" ADD CONSTRAINT "usage_rollup_month_check" CHECK (
    "requests" >= 0 AND "retries" >= 0 AND "estimated" >= 0 AND "input_tokens" >= 0 AND "output_tokens" >= 0
);
ALTER TABLE "usage_rollup_month" SET (fillfactor = 70);

-- What was booked so far. The ledger's lock keeps bookings out until the sums are there; workers of an older version
-- must not book afterwards, because they know nothing of months.
SELECT pg_advisory_xact_lock(7405323);
INSERT INTO "usage_rollup_month" ("enterprise_id", "month", "series_id", "requests", "retries", "estimated", "input_tokens", "cached_input_tokens", "cache_write_tokens",
    "audio_input_tokens", "image_input_tokens", "output_tokens", "reasoning_tokens", "audio_output_tokens", "cost_pico",
    "cost_nano")
SELECT "enterprise_id", date_trunc('month', "day"::timestamp)::date, "series_id", sum("requests"), sum("retries"),
    sum("estimated"), sum("input_tokens"), sum("cached_input_tokens"), sum("cache_write_tokens"),
    sum("audio_input_tokens"), sum("image_input_tokens"), sum("output_tokens"), sum("reasoning_tokens"),
    sum("audio_output_tokens"), sum("cost_pico"), sum("cost_nano")
FROM "usage_rollup_day" GROUP BY 1, 2, 3;
