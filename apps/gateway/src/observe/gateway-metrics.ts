import type { RefusalEvent } from '@weir/domain';
import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';
import type { Exposure } from '@weir/quota';
import type { CallEnd, Charge, LiveCall } from '../settlement/live-call.js';

/** The gateway's own figures, beside those of the platform. Labels are bounded: routes, outcomes and codes only. */
export class GatewayMetrics {
  private readonly calls;
  private readonly refused;
  private readonly tokens;
  private readonly estimated;
  private readonly overshoot;
  private readonly settlements;
  private readonly left;
  private readonly overhead;
  private readonly firstByte;
  private readonly droppedRefusals;

  constructor(registry: Registry) {
    const registers = [registry];
    this.calls = new Counter({
      name: 'weir_calls_total',
      help: 'Calls that reached an upstream, by how they ended.',
      labelNames: ['route', 'status', 'streamed'] as const,
      registers,
    });
    this.refused = new Counter({
      name: 'weir_refusals_total',
      help: 'Calls that were refused or failed without a charge.',
      labelNames: ['route', 'outcome', 'code', 'level'] as const,
      registers,
    });
    this.tokens = new Counter({
      name: 'weir_tokens_total',
      help: 'Settled tokens.',
      labelNames: ['kind'] as const,
      registers,
    });
    this.estimated = new Counter({
      name: 'weir_estimated_calls_total',
      help: 'Settled calls whose tokens were counted here because the upstream reported none.',
      registers,
    });
    this.overshoot = new Counter({
      name: 'weir_overshoot_tokens_total',
      help: 'Prompt tokens that upstreams reported beyond what was counted and reserved here.',
      registers,
    });
    this.settlements = new Counter({
      name: 'weir_settlements_total',
      help: 'Settlements by outcome.',
      labelNames: ['outcome'] as const,
      registers,
    });
    this.left = new Counter({
      name: 'weir_settlements_left_total',
      help: 'Settlements that this process gave up and left to the lease reaper.',
      registers,
    });
    this.overhead = new Histogram({
      name: 'weir_admission_seconds',
      help: 'Time from the request to its admission or refusal: key, parse, count, admit.',
      labelNames: ['outcome'] as const,
      buckets: [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1],
      registers,
    });
    this.firstByte = new Histogram({
      name: 'weir_upstream_first_byte_seconds',
      help: 'Time from dispatch to the head of the answer.',
      labelNames: ['route'] as const,
      buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
      registers,
    });
    this.droppedRefusals = new Counter({
      name: 'weir_refusal_events_dropped_total',
      help: 'Refusal events that were not written: the buffer was full or the store away. Never in the money path.',
      registers,
    });
  }

  /** Registers gauges that read the live state when they are scraped. */
  gauges(
    registry: Registry,
    read: {
      inFlight: () => number;
      waiting: () => number;
      leases: () => number;
      unsettled: () => number;
      drains: () => number;
      localDenials: () => number;
      gateways: () => number;
      exposure: () => Exposure;
    },
  ): void {
    const gauge = (name: string, help: string, value: () => number): void => {
      new Gauge({
        name,
        help,
        registers: [registry],
        collect() {
          this.set(value());
        },
      });
    };
    gauge('weir_calls_in_flight', 'Calls in this process.', read.inFlight);
    gauge('weir_calls_waiting', 'Calls that wait for a limit to admit them.', read.waiting);
    gauge('weir_leases_held', 'Leases that this process renews.', read.leases);
    gauge('weir_settlements_pending', 'Settlements that are not done yet.', read.unsettled);
    gauge(
      'weir_local_denials',
      'Calls refused since the start without asking the store.',
      read.localDenials,
    );
    gauge('weir_gateways', 'Gateways that share the limits, this one included.', read.gateways);
    gauge(
      'weir_exposure_worst_case_nano',
      'The most money that all gateways may admit while Redis is away; -1 where an enterprise chose no bound.',
      () => Number(read.exposure().worstCaseNano ?? -1n),
    );
    gauge('weir_exposure_admitted_nano', 'Money admitted here since Redis went away.', () =>
      Number(read.exposure().admittedNano),
    );
    gauge(
      'weir_spooled_settlements',
      'Settlements on this disk that are not booked yet.',
      () => read.exposure().spooled,
    );
    gauge(
      'weir_drains_running',
      'Streams read on for their usage after the client left.',
      read.drains,
    );
  }

  callEnded(call: LiveCall, end: CallEnd, charge: Charge): void {
    const { route, streamed } = call.draft;
    this.calls.inc({ route, status: end.status, streamed: String(streamed) });
    if (charge.kind === 'nothing') return;
    this.tokens.inc({ kind: 'input' }, charge.actual.inputTokens);
    this.tokens.inc({ kind: 'output' }, charge.actual.outputTokens);
    if (charge.estimated) this.estimated.inc();
    const beyond = charge.actual.inputTokens - call.promptTokens;
    if (beyond > 0) this.overshoot.inc(beyond);
  }

  refusal(event: Pick<RefusalEvent, 'route' | 'outcome' | 'code' | 'scope'>): void {
    const { route, outcome, code, scope } = event;
    this.refused.inc({ route, outcome, code, level: scope?.level ?? '' });
  }

  refusalsDropped(count: number): void {
    this.droppedRefusals.inc(count);
  }

  settled(outcome: string): void {
    this.settlements.inc({ outcome });
  }

  settlementLeft(): void {
    this.left.inc();
  }

  admission(outcome: 'admitted' | 'refused', seconds: number): void {
    this.overhead.observe({ outcome }, seconds);
  }

  upstreamFirstByte(route: string, seconds: number): void {
    this.firstByte.observe({ route }, seconds);
  }
}
