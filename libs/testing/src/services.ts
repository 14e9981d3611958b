/** The services that integration tests run against. The test launcher sets them. */
type ServiceVariable =
  | 'WEIR_TEST_DATABASE_URL'
  | 'WEIR_TEST_REDIS_URL'
  | 'WEIR_TEST_REDIS_CLUSTER_URL'
  | 'WEIR_TEST_KAFKA_BROKERS';

/** @throws Error that says what to do when the service is not there: a test must not pass by not running. */
export function requireService(variable: ServiceVariable): string {
  const value = process.env[variable];
  if (!value) {
    throw new Error(
      `${variable} is not set: run the tests with \`npm test\`, or set it to a running service`,
    );
  }
  return value;
}

/**
 * Brokers for tests that need a real Kafka, or null where there is none and that is allowed: use with
 * `describe.skipIf`. With WEIR_REQUIRE_ALL_SERVICES=1 (CI) a missing broker is an error.
 */
export function kafkaBrokersOrNull(): string[] | null {
  const value = process.env['WEIR_TEST_KAFKA_BROKERS'];
  if (value) return value.split(',');
  if (process.env['WEIR_REQUIRE_ALL_SERVICES'] === '1') requireService('WEIR_TEST_KAFKA_BROKERS');
  return null;
}
