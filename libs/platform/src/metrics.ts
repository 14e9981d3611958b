import { collectDefaultMetrics, Registry } from 'prom-client';

/** The app's metrics. One registry per app, never prom-client's global one: tests run several apps in one process. */
export class Metrics {
  readonly registry = new Registry();

  constructor(name: string) {
    this.registry.setDefaultLabels({ app: name });
  }

  /** Memory, CPU, garbage collection and event-loop delay of the process. Once per process. */
  collectProcessMetrics(): void {
    collectDefaultMetrics({ register: this.registry });
  }
}
