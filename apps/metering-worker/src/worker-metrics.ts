import type { MeteringStatus } from '@weir/persistence';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** What the worker counts. */
export class WorkerMetrics {
  readonly relayed: Counter;
  readonly ledgerRecords: Counter<'outcome'>;
  readonly commitSeconds: Histogram;
  readonly reaped: Counter;
  private readonly lag: Gauge;
  private readonly completeAge: Gauge;
  private readonly holes: Gauge;
  private readonly deadLetters: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.relayed = new Counter({
      name: 'weir_relay_events_total',
      help: 'Events that left the outbox.',
      registers,
    });
    this.ledgerRecords = new Counter({
      name: 'weir_ledger_records_total',
      help: 'Records that the ledger dealt with.',
      labelNames: ['outcome'] as const,
      registers,
    });
    this.commitSeconds = new Histogram({
      name: 'weir_ledger_commit_seconds',
      help: 'Time of one booking transaction.',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    });
    this.reaped = new Counter({
      name: 'weir_leases_reaped_total',
      help: 'Leases that ran out and were settled by the reaper.',
      registers,
    });
    this.lag = new Gauge({
      name: 'weir_metering_lag_events',
      help: 'Events that were charged and are not in the books yet.',
      registers,
    });
    this.completeAge = new Gauge({
      name: 'weir_metering_complete_age_seconds',
      help: 'How old the instant is up to which the books are complete; -1 when it is unknown.',
      registers,
    });
    this.holes = new Gauge({
      name: 'weir_metering_holes',
      help: 'Ranges of sequence numbers that are missing.',
      registers,
    });
    this.deadLetters = new Gauge({
      name: 'weir_metering_dead_letters',
      help: 'Records that could not be booked and were not replayed since.',
      registers,
    });
  }

  observeStatus(status: MeteringStatus, nowMs: number): void {
    this.lag.set(Number(status.lagEvents));
    this.holes.set(status.holes.length);
    this.deadLetters.set(status.deadLetters);
    const { completeUpTo } = status;
    this.completeAge.set(completeUpTo === null ? -1 : (nowMs - completeUpTo.getTime()) / 1_000);
  }
}
