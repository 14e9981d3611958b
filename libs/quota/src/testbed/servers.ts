/** Where the integration suites run: the same tests on one Redis and on a cluster-enabled one. */
export const servers = [
  { name: 'one Redis', variable: 'WEIR_TEST_REDIS_URL', cluster: false },
  { name: 'Redis Cluster', variable: 'WEIR_TEST_REDIS_CLUSTER_URL', cluster: true },
] as const;
