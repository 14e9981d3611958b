-- CreateTable
CREATE TABLE "enterprise" (
    "id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "time_zone" TEXT NOT NULL,
    "currency" CHAR(3) NOT NULL,
    "settings" JSONB NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "policy_version" BIGINT NOT NULL DEFAULT 0,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "enterprise_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "department" (
    "id" UUID NOT NULL,
    "enterprise_id" UUID NOT NULL,
    "parent_id" UUID,
    "name" TEXT NOT NULL,
    "cost_center" TEXT,
    "status" TEXT NOT NULL DEFAULT 'active',
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,
    "deleted_at" TIMESTAMPTZ(3),

    CONSTRAINT "department_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "app_user" (
    "id" UUID NOT NULL,
    "enterprise_id" UUID NOT NULL,
    "department_id" UUID NOT NULL,
    "kind" TEXT NOT NULL DEFAULT 'person',
    "name" TEXT NOT NULL,
    "email" TEXT,
    "password_hash" TEXT,
    "role" TEXT NOT NULL DEFAULT 'member',
    "failed_sign_ins" INTEGER NOT NULL DEFAULT 0,
    "locked_until" TIMESTAMPTZ(3),
    "status" TEXT NOT NULL DEFAULT 'active',
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,
    "deleted_at" TIMESTAMPTZ(3),

    CONSTRAINT "app_user_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "api_key" (
    "id" UUID NOT NULL,
    "enterprise_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "prefix" TEXT NOT NULL,
    "sha256" CHAR(64) NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'active',
    "allowed_models" TEXT[],
    "restrict_models" BOOLEAN NOT NULL DEFAULT false,
    "expires_at" TIMESTAMPTZ(3),
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,
    "deleted_at" TIMESTAMPTZ(3),

    CONSTRAINT "api_key_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "quota_limit" (
    "id" UUID NOT NULL,
    "enterprise_id" UUID NOT NULL,
    "scope_level" TEXT NOT NULL,
    "scope_id" UUID NOT NULL,
    "metric" TEXT NOT NULL,
    "window" TEXT NOT NULL,
    "model" TEXT NOT NULL DEFAULT '',
    "amount" BIGINT,
    "mode" TEXT NOT NULL DEFAULT 'hard',
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "quota_limit_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "upstream" (
    "id" UUID NOT NULL,
    "enterprise_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "dialect" TEXT NOT NULL,
    "base_url" TEXT NOT NULL,
    "sealed_api_key" TEXT,
    "connect_timeout_ms" INTEGER NOT NULL DEFAULT 5000,
    "first_byte_timeout_ms" INTEGER NOT NULL DEFAULT 120000,
    "idle_timeout_ms" INTEGER NOT NULL DEFAULT 60000,
    "on_client_gone" TEXT NOT NULL DEFAULT 'drain',
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "upstream_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "model" (
    "id" UUID NOT NULL,
    "enterprise_id" UUID NOT NULL,
    "alias" TEXT NOT NULL,
    "kind" TEXT NOT NULL DEFAULT 'chat',
    "dialect" TEXT NOT NULL DEFAULT 'openai',
    "context_window_tokens" INTEGER NOT NULL,
    "max_output_tokens" INTEGER NOT NULL,
    "default_output_reserve" INTEGER NOT NULL DEFAULT 1024,
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "model_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "model_route" (
    "id" UUID NOT NULL,
    "model_id" UUID NOT NULL,
    "upstream_id" UUID NOT NULL,
    "upstream_model" TEXT NOT NULL,
    "weight" INTEGER NOT NULL DEFAULT 100,
    "priority" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "model_route_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "model_price_version" (
    "id" UUID NOT NULL,
    "model_id" UUID NOT NULL,
    "currency" CHAR(3) NOT NULL,
    "valid_from" TIMESTAMPTZ(3) NOT NULL,
    "valid_to" TIMESTAMPTZ(3),
    "pico_per_token" JSONB NOT NULL,
    "pico_per_request" BIGINT NOT NULL DEFAULT 0,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "model_price_version_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "admin_session" (
    "sha256" CHAR(64) NOT NULL,
    "user_id" UUID NOT NULL,
    "csrf_token" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "last_seen_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "admin_session_pkey" PRIMARY KEY ("sha256")
);

-- CreateTable
CREATE TABLE "audit_entry" (
    "id" UUID NOT NULL,
    "enterprise_id" UUID NOT NULL,
    "sequence" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "actor_id" UUID,
    "actor_name" TEXT NOT NULL,
    "request_id" TEXT NOT NULL,
    "action" TEXT NOT NULL,
    "target_type" TEXT NOT NULL,
    "target_id" TEXT NOT NULL,
    "target_name" TEXT NOT NULL,
    "before" JSONB,
    "after" JSONB,
    "previous_hash" CHAR(64) NOT NULL,
    "hash" CHAR(64) NOT NULL,

    CONSTRAINT "audit_entry_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "export_job" (
    "id" UUID NOT NULL,
    "enterprise_id" UUID NOT NULL,
    "requested_by" UUID NOT NULL,
    "kind" TEXT NOT NULL,
    "profile" TEXT NOT NULL DEFAULT 'excel',
    "request" JSONB NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'queued',
    "rows_done" BIGINT NOT NULL DEFAULT 0,
    "rows_total" BIGINT,
    "total_nano" DECIMAL(38,0),
    "total_pico" DECIMAL(38,0),
    "complete_up_to" TIMESTAMPTZ(3),
    "file_name" TEXT,
    "file_sha256" CHAR(64),
    "failure" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "started_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),

    CONSTRAINT "export_job_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "usage_event" (
    "enterprise_id" UUID NOT NULL,
    "event_id" UUID NOT NULL,
    "minted_at" TIMESTAMPTZ(3) NOT NULL,
    "reserved_at" TIMESTAMPTZ(3) NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    "first_token_at" TIMESTAMPTZ(3),
    "ended_at" TIMESTAMPTZ(3) NOT NULL,
    "booked_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "seq" BIGINT NOT NULL,
    "series_id" INTEGER NOT NULL,
    "shard" SMALLINT NOT NULL,
    "attempt" SMALLINT NOT NULL,
    "queue_wait_ms" INTEGER NOT NULL,
    "department_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "key_id" UUID NOT NULL,
    "provider_id" UUID NOT NULL,
    "price_version_id" UUID NOT NULL,
    "adjusts" UUID,
    "streamed" BOOLEAN NOT NULL,
    "estimated" BOOLEAN NOT NULL,
    "late" BOOLEAN NOT NULL,
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
    "currency" CHAR(3) NOT NULL,
    "kind" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "period_id" TEXT NOT NULL,
    "epoch" TEXT NOT NULL,
    "request_id" TEXT NOT NULL,
    "route" TEXT NOT NULL,
    "model_asked" TEXT NOT NULL,
    "model_served" TEXT NOT NULL,
    "provider_name" TEXT NOT NULL,
    "user_name" TEXT NOT NULL,
    "key_name" TEXT NOT NULL,
    "department_ids" UUID[],
    "department_names" TEXT[],
    "unit_prices" JSONB NOT NULL,
    "tags" JSONB NOT NULL,

    CONSTRAINT "usage_event_pkey" PRIMARY KEY ("enterprise_id","event_id","minted_at")
) PARTITION BY RANGE ("minted_at");

-- CreateTable
CREATE TABLE "usage_dropped_month" (
    "month" DATE NOT NULL,
    "dropped_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "usage_dropped_month_pkey" PRIMARY KEY ("month")
);

-- CreateTable
CREATE TABLE "usage_path" (
    "id" SERIAL NOT NULL,
    "enterprise_id" UUID NOT NULL,
    "department_ids" UUID[],

    CONSTRAINT "usage_path_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "usage_series" (
    "id" SERIAL NOT NULL,
    "enterprise_id" UUID NOT NULL,
    "path_id" INTEGER NOT NULL,
    "user_id" UUID NOT NULL,
    "key_id" UUID NOT NULL,
    "model" TEXT NOT NULL,
    "provider_id" UUID NOT NULL,
    "status" TEXT NOT NULL,

    CONSTRAINT "usage_series_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "usage_rollup" (
    "enterprise_id" UUID NOT NULL,
    "quarter" TIMESTAMPTZ(0) NOT NULL,
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

    CONSTRAINT "usage_rollup_pkey" PRIMARY KEY ("enterprise_id","quarter","series_id")
);

-- CreateTable
CREATE TABLE "usage_rollup_day" (
    "enterprise_id" UUID NOT NULL,
    "day" DATE NOT NULL,
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

    CONSTRAINT "usage_rollup_day_pkey" PRIMARY KEY ("enterprise_id","day","series_id")
);

-- CreateTable
CREATE TABLE "usage_zone" (
    "enterprise_id" UUID NOT NULL,
    "zone" TEXT NOT NULL,

    CONSTRAINT "usage_zone_pkey" PRIMARY KEY ("enterprise_id")
);

-- CreateTable
CREATE TABLE "usage_dimension" (
    "enterprise_id" UUID NOT NULL,
    "kind" TEXT NOT NULL,
    "id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "path" UUID[],
    "last_seen_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "usage_dimension_pkey" PRIMARY KEY ("enterprise_id","kind","id")
);

-- CreateTable
CREATE TABLE "ledger_offset" (
    "topic" TEXT NOT NULL,
    "partition" INTEGER NOT NULL,
    "next_offset" BIGINT NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "ledger_offset_pkey" PRIMARY KEY ("topic","partition")
);

-- CreateTable
CREATE TABLE "ledger_progress_block" (
    "shard" SMALLINT NOT NULL,
    "epoch" TEXT NOT NULL,
    "block" BIGINT NOT NULL,
    "count" INTEGER NOT NULL,
    "seen" BYTEA NOT NULL,

    CONSTRAINT "ledger_progress_block_pkey" PRIMARY KEY ("shard","epoch","block")
);

-- CreateTable
CREATE TABLE "ledger_progress" (
    "shard" SMALLINT NOT NULL,
    "epoch" TEXT NOT NULL,
    "watermark_seq" BIGINT NOT NULL,
    "highest_seq" BIGINT NOT NULL,
    "watermark_at" TIMESTAMPTZ(3),
    "hole_since" TIMESTAMPTZ(3),
    "first_seen_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "ledger_progress_pkey" PRIMARY KEY ("shard","epoch")
);

-- CreateTable
CREATE TABLE "ledger_source" (
    "shard" SMALLINT NOT NULL,
    "outbox_entries" BIGINT NOT NULL,
    "broker_lag" BIGINT NOT NULL,
    "oldest_entry_at" TIMESTAMPTZ(3),
    "checked_at" TIMESTAMPTZ(3) NOT NULL,
    "drained_at" TIMESTAMPTZ(3),

    CONSTRAINT "ledger_source_pkey" PRIMARY KEY ("shard")
);

-- CreateTable
CREATE TABLE "ledger_alarm" (
    "id" UUID NOT NULL,
    "kind" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "details" JSONB NOT NULL,
    "raised_at" TIMESTAMPTZ(3) NOT NULL,
    "cleared_at" TIMESTAMPTZ(3),

    CONSTRAINT "ledger_alarm_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "ledger_conflict" (
    "id" UUID NOT NULL,
    "enterprise_id" UUID NOT NULL,
    "event_id" UUID NOT NULL,
    "content_hash" CHAR(64) NOT NULL,
    "second" JSONB NOT NULL,
    "reason" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "ledger_conflict_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "dead_letter" (
    "id" UUID NOT NULL,
    "topic" TEXT NOT NULL,
    "partition" INTEGER NOT NULL,
    "offset" BIGINT NOT NULL,
    "key" BYTEA,
    "value" BYTEA NOT NULL,
    "reason" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "replayed_at" TIMESTAMPTZ(3),

    CONSTRAINT "dead_letter_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "refusal" (
    "id" UUID NOT NULL,
    "enterprise_id" UUID NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "request_id" TEXT NOT NULL,
    "department_id" UUID,
    "user_id" UUID NOT NULL,
    "key_id" UUID NOT NULL,
    "model" TEXT NOT NULL,
    "route" TEXT NOT NULL,
    "outcome" TEXT NOT NULL,
    "code" TEXT NOT NULL,
    "scope_level" TEXT,
    "scope_id" UUID,
    "scope_name" TEXT,
    "metric" TEXT,
    "window" TEXT,
    "retry_after_ms" BIGINT,

    CONSTRAINT "refusal_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "reconcile_run" (
    "id" UUID NOT NULL,
    "enterprise_id" UUID NOT NULL,
    "period_id" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "scopes" INTEGER NOT NULL,
    "drifted" INTEGER NOT NULL,
    "settled" BOOLEAN NOT NULL,
    "details" JSONB NOT NULL,

    CONSTRAINT "reconcile_run_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "counter_repair" (
    "id" UUID NOT NULL,
    "enterprise_id" UUID NOT NULL,
    "scope_id" UUID NOT NULL,
    "window" TEXT NOT NULL,
    "period_id" TEXT NOT NULL,
    "model" TEXT NOT NULL DEFAULT '',
    "requests" BIGINT NOT NULL,
    "input_tokens" BIGINT NOT NULL,
    "output_tokens" BIGINT NOT NULL,
    "cost_nano" DECIMAL(38,0) NOT NULL,
    "reason" TEXT NOT NULL,
    "requested_by" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "applied_at" TIMESTAMPTZ(3),

    CONSTRAINT "counter_repair_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "provider_import" (
    "id" UUID NOT NULL,
    "enterprise_id" UUID NOT NULL,
    "provider_id" UUID NOT NULL,
    "dialect" TEXT NOT NULL,
    "file_name" TEXT NOT NULL,
    "file_sha256" CHAR(64) NOT NULL,
    "rows" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "provider_import_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "provider_usage_line" (
    "import_id" UUID NOT NULL,
    "line" INTEGER NOT NULL,
    "request_id" TEXT,
    "model" TEXT NOT NULL,
    "starts_at" TIMESTAMPTZ(3) NOT NULL,
    "ends_at" TIMESTAMPTZ(3) NOT NULL,
    "requests" BIGINT NOT NULL,
    "input_tokens" BIGINT NOT NULL,
    "cached_tokens" BIGINT NOT NULL,
    "output_tokens" BIGINT NOT NULL,
    "cost_pico" DECIMAL(38,0),

    CONSTRAINT "provider_usage_line_pkey" PRIMARY KEY ("import_id","line")
);

-- CreateIndex
CREATE INDEX "department_enterprise_id_parent_id_idx" ON "department"("enterprise_id", "parent_id");

-- CreateIndex
CREATE UNIQUE INDEX "app_user_email_key" ON "app_user"("email");

-- CreateIndex
CREATE INDEX "app_user_enterprise_id_department_id_idx" ON "app_user"("enterprise_id", "department_id");

-- CreateIndex
CREATE UNIQUE INDEX "api_key_sha256_key" ON "api_key"("sha256");

-- CreateIndex
CREATE INDEX "api_key_enterprise_id_user_id_idx" ON "api_key"("enterprise_id", "user_id");

-- CreateIndex
CREATE INDEX "quota_limit_enterprise_id_idx" ON "quota_limit"("enterprise_id");

-- CreateIndex
CREATE UNIQUE INDEX "quota_limit_scope_id_metric_window_model_key" ON "quota_limit"("scope_id", "metric", "window", "model");

-- CreateIndex
CREATE UNIQUE INDEX "upstream_enterprise_id_name_key" ON "upstream"("enterprise_id", "name");

-- CreateIndex
CREATE UNIQUE INDEX "model_enterprise_id_alias_key" ON "model"("enterprise_id", "alias");

-- CreateIndex
CREATE INDEX "model_route_model_id_idx" ON "model_route"("model_id");

-- CreateIndex
CREATE INDEX "model_price_version_model_id_valid_from_idx" ON "model_price_version"("model_id", "valid_from");

-- CreateIndex
CREATE INDEX "admin_session_user_id_idx" ON "admin_session"("user_id");

-- CreateIndex
CREATE INDEX "audit_entry_enterprise_id_at_idx" ON "audit_entry"("enterprise_id", "at");

-- CreateIndex
CREATE UNIQUE INDEX "audit_entry_enterprise_id_sequence_key" ON "audit_entry"("enterprise_id", "sequence");

-- CreateIndex
CREATE INDEX "export_job_enterprise_id_created_at_idx" ON "export_job"("enterprise_id", "created_at");

-- CreateIndex
CREATE INDEX "usage_event_enterprise_id_reserved_at_event_id_idx" ON "usage_event"("enterprise_id", "reserved_at", "event_id");

-- CreateIndex
CREATE INDEX "usage_event_enterprise_id_request_id_idx" ON "usage_event"("enterprise_id", "request_id");

-- CreateIndex
CREATE UNIQUE INDEX "usage_path_enterprise_id_department_ids_key" ON "usage_path"("enterprise_id", "department_ids");

-- CreateIndex
CREATE UNIQUE INDEX "usage_series_enterprise_id_path_id_user_id_key_id_model_pro_key" ON "usage_series"("enterprise_id", "path_id", "user_id", "key_id", "model", "provider_id", "status");

-- CreateIndex
CREATE UNIQUE INDEX "ledger_alarm_kind_subject_key" ON "ledger_alarm"("kind", "subject");

-- CreateIndex
CREATE UNIQUE INDEX "ledger_conflict_enterprise_id_event_id_content_hash_key" ON "ledger_conflict"("enterprise_id", "event_id", "content_hash");

-- CreateIndex
CREATE INDEX "dead_letter_at_idx" ON "dead_letter"("at");

-- CreateIndex
CREATE UNIQUE INDEX "dead_letter_topic_partition_offset_key" ON "dead_letter"("topic", "partition", "offset");

-- CreateIndex
CREATE INDEX "refusal_enterprise_id_at_idx" ON "refusal"("enterprise_id", "at");

-- CreateIndex
CREATE INDEX "refusal_enterprise_id_request_id_idx" ON "refusal"("enterprise_id", "request_id");

-- CreateIndex
CREATE INDEX "reconcile_run_enterprise_id_at_idx" ON "reconcile_run"("enterprise_id", "at");

-- CreateIndex
CREATE INDEX "counter_repair_enterprise_id_created_at_idx" ON "counter_repair"("enterprise_id", "created_at");

-- CreateIndex
CREATE UNIQUE INDEX "provider_import_enterprise_id_provider_id_file_sha256_key" ON "provider_import"("enterprise_id", "provider_id", "file_sha256");

-- AddForeignKey
ALTER TABLE "department" ADD CONSTRAINT "department_enterprise_id_fkey" FOREIGN KEY ("enterprise_id") REFERENCES "enterprise"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "department" ADD CONSTRAINT "department_parent_id_fkey" FOREIGN KEY ("parent_id") REFERENCES "department"("id") ON DELETE SET NULL ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "app_user" ADD CONSTRAINT "app_user_enterprise_id_fkey" FOREIGN KEY ("enterprise_id") REFERENCES "enterprise"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "app_user" ADD CONSTRAINT "app_user_department_id_fkey" FOREIGN KEY ("department_id") REFERENCES "department"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_enterprise_id_fkey" FOREIGN KEY ("enterprise_id") REFERENCES "enterprise"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "app_user"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "quota_limit" ADD CONSTRAINT "quota_limit_enterprise_id_fkey" FOREIGN KEY ("enterprise_id") REFERENCES "enterprise"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "upstream" ADD CONSTRAINT "upstream_enterprise_id_fkey" FOREIGN KEY ("enterprise_id") REFERENCES "enterprise"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "model" ADD CONSTRAINT "model_enterprise_id_fkey" FOREIGN KEY ("enterprise_id") REFERENCES "enterprise"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "model_route" ADD CONSTRAINT "model_route_model_id_fkey" FOREIGN KEY ("model_id") REFERENCES "model"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "model_route" ADD CONSTRAINT "model_route_upstream_id_fkey" FOREIGN KEY ("upstream_id") REFERENCES "upstream"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "model_price_version" ADD CONSTRAINT "model_price_version_model_id_fkey" FOREIGN KEY ("model_id") REFERENCES "model"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "admin_session" ADD CONSTRAINT "admin_session_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "app_user"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "export_job" ADD CONSTRAINT "export_job_enterprise_id_fkey" FOREIGN KEY ("enterprise_id") REFERENCES "enterprise"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "export_job" ADD CONSTRAINT "export_job_requested_by_fkey" FOREIGN KEY ("requested_by") REFERENCES "app_user"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "provider_usage_line" ADD CONSTRAINT "provider_usage_line_import_id_fkey" FOREIGN KEY ("import_id") REFERENCES "provider_import"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- ── What Prisma's schema cannot say ────────────────────────────────────────────────────────────────────────────

-- Checks

ALTER TABLE "usage_event"
    ADD CONSTRAINT "usage_event_tokens_check" CHECK (
        "input_tokens" >= 0 AND "cached_input_tokens" >= 0 AND "cache_write_tokens" >= 0
        AND "audio_input_tokens" >= 0 AND "image_input_tokens" >= 0 AND "output_tokens" >= 0
        AND "reasoning_tokens" >= 0 AND "audio_output_tokens" >= 0
    ),
    ADD CONSTRAINT "usage_event_cost_check" CHECK (
        "kind" = 'adjustment' OR ("cost_pico" >= 0 AND "cost_nano" >= 0)
    ),
    ADD CONSTRAINT "usage_event_kind_check" CHECK ("kind" IN ('usage', 'adjustment')),
    ADD CONSTRAINT "usage_event_seq_check" CHECK ("seq" >= 1),
    ADD CONSTRAINT "usage_event_attempt_check" CHECK ("attempt" >= 1),
    ADD CONSTRAINT "usage_event_departments_check" CHECK (
        cardinality("department_ids") >= 1
        AND cardinality("department_ids") = cardinality("department_names")
    );

ALTER TABLE "usage_rollup" ADD CONSTRAINT "usage_rollup_check" CHECK (
    "requests" >= 0 AND "retries" >= 0 AND "estimated" >= 0 AND "input_tokens" >= 0 AND "output_tokens" >= 0
);
ALTER TABLE "usage_rollup_day" ADD CONSTRAINT "usage_rollup_day_check" CHECK (
    "requests" >= 0 AND "retries" >= 0 AND "estimated" >= 0 AND "input_tokens" >= 0 AND "output_tokens" >= 0
);

ALTER TABLE "quota_limit"
    ADD CONSTRAINT "quota_limit_amount_check" CHECK ("amount" IS NULL OR "amount" >= 0),
    ADD CONSTRAINT "quota_limit_scope_level_check" CHECK (
        "scope_level" IN ('enterprise', 'department', 'user', 'key')
    ),
    ADD CONSTRAINT "quota_limit_mode_check" CHECK ("mode" IN ('hard', 'soft', 'shadow'));

ALTER TABLE "department" ADD CONSTRAINT "department_parent_check" CHECK ("parent_id" IS DISTINCT FROM "id");

-- The price ranges of one model never overlap.

CREATE EXTENSION IF NOT EXISTS btree_gist;

ALTER TABLE "model_price_version"
    ADD CONSTRAINT "model_price_version_range_check" CHECK ("valid_to" IS NULL OR "valid_from" < "valid_to"),
    ADD CONSTRAINT "model_price_version_request_check" CHECK ("pico_per_request" >= 0),
    ADD CONSTRAINT "model_price_version_no_overlap" EXCLUDE USING gist (
        "model_id" WITH =,
        tstzrange("valid_from", "valid_to", '[)') WITH &&
    );

-- Rows that are updated all the time keep room on their page for the new version.

ALTER TABLE "usage_rollup" SET (fillfactor = 70);
ALTER TABLE "usage_rollup_day" SET (fillfactor = 70);
ALTER TABLE "ledger_progress" SET (fillfactor = 50);
ALTER TABLE "ledger_progress_block" SET (fillfactor = 50);
ALTER TABLE "ledger_offset" SET (fillfactor = 50);

-- Partitions

-- Makes the partition of usage_event for the month (UTC) of an instant, unless it is there. Attaching, rather than
-- creating it as a partition, does not wait for running inserts. Refuses a month that retention has dropped.
CREATE FUNCTION weir_ensure_usage_partition("at" timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    month_start timestamptz := date_trunc('month', "at", 'UTC');
    month_end timestamptz;
    part_name text := 'usage_event_' || to_char(month_start AT TIME ZONE 'UTC', 'YYYY_MM');
BEGIN
    -- The month's end in UTC, whatever the zone of the connection.
    month_end := ((month_start AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
    IF to_regclass(part_name) IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(7405322);
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

-- Drops a month's partition and remembers that it did. Returns whether there was one.
CREATE FUNCTION weir_drop_usage_partition("at" timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    month_start timestamptz := date_trunc('month', "at", 'UTC');
    part_name text := 'usage_event_' || to_char(month_start AT TIME ZONE 'UTC', 'YYYY_MM');
BEGIN
    PERFORM pg_advisory_xact_lock(7405322);
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
