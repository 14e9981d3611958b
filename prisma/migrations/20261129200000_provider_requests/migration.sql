-- Not every provider counts requests in its usage file: null is "not said", never 0.
ALTER TABLE "provider_usage_line" ALTER COLUMN "requests" DROP NOT NULL;
