import { timingSafeEqual } from 'node:crypto';
import { Controller, Get, Header, Inject, Req, Res } from '@nestjs/common';
import { WeirError } from '@weir/domain';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from './logger.js';
import { Metrics } from './metrics.js';
import { METRICS_TOKEN } from './tokens.js';

/** What a check found. Throwing or taking too long is a failure. `reason` is shown to anyone who asks. */
export type CheckResult = { readonly degraded: string } | void;
export type Check = (signal: AbortSignal) => Promise<CheckResult> | CheckResult;

export type CheckOptions = {
  /** A check that takes longer has failed. */
  timeoutMs?: number;
  /** Whether the app cannot serve without it (`not_ready`, 503); else its failure only means `degraded`. */
  critical?: boolean;
};

type CheckReport = { status: 'ok' | 'degraded' | 'failed'; latency_ms: number; reason?: string };

export type Readiness = {
  status: 'ready' | 'degraded' | 'not_ready' | 'draining';
  reasons: string[];
  checks: Record<string, CheckReport>;
};

/** The checks behind GET /readyz. */
export class HealthChecks {
  private readonly checks = new Map<
    string,
    { check: Check; timeoutMs: number; critical: boolean }
  >();
  private readonly lastStatus = new Map<string, CheckReport['status']>();
  private running: Promise<Readiness> | undefined;
  private draining = false;

  constructor(private readonly logger: Logger) {}

  /** @throws Error when the name is taken: two checks under one name would hide each other. */
  register(name: string, check: Check, options: CheckOptions = {}): void {
    if (this.checks.has(name)) throw new Error(`there is a health check named ${name} already`);
    this.checks.set(name, {
      check,
      timeoutMs: options.timeoutMs ?? 1_000,
      critical: options.critical ?? true,
    });
  }

  /** From now on the app says that it wants no new work. */
  startDraining(): void {
    this.draining = true;
  }

  /** Runs all checks at once. Callers that come meanwhile share the run: probes must not multiply the load. */
  async readiness(): Promise<Readiness> {
    if (this.draining) return { status: 'draining', reasons: ['shutting down'], checks: {} };
    this.running ??= this.runAll().finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  private async runAll(): Promise<Readiness> {
    const names = [...this.checks.keys()];
    const reports = await Promise.all(names.map((name) => this.run(name)));
    const readiness: Readiness = { status: 'ready', reasons: [], checks: {} };
    for (const [index, name] of names.entries()) {
      const report = reports[index];
      if (!report) continue;
      readiness.checks[name] = report;
      if (report.status === 'ok') continue;
      readiness.reasons.push(`${name}: ${report.reason ?? 'failed'}`);
      const fatal = report.status === 'failed' && this.checks.get(name)?.critical === true;
      if (fatal) readiness.status = 'not_ready';
      else if (readiness.status === 'ready') readiness.status = 'degraded';
    }
    return readiness;
  }

  private async run(name: string): Promise<CheckReport> {
    const entry = this.checks.get(name);
    if (!entry) throw new Error(`no health check named ${name}`);
    const startedMs = performance.now();
    const timeout = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const expired = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        reject(new CheckTimeout(entry.timeoutMs));
        timeout.abort();
      }, entry.timeoutMs);
    });
    let report: CheckReport;
    let cause: unknown;
    try {
      // The wrapper turns a synchronous throw into a rejection.
      const result = await Promise.race([(async () => entry.check(timeout.signal))(), expired]);
      const latency_ms = Math.round(performance.now() - startedMs);
      report = result
        ? { status: 'degraded', latency_ms, reason: result.degraded }
        : { status: 'ok', latency_ms };
    } catch (error) {
      cause = error;
      // The error's text may name hosts and users; it goes to the log alone.
      const reason = error instanceof CheckTimeout ? error.message : 'failed';
      report = { status: 'failed', latency_ms: Math.round(performance.now() - startedMs), reason };
    } finally {
      clearTimeout(timer);
    }
    this.logChange(name, report, cause);
    return report;
  }

  /** Only changes are logged: a probe every second must not fill the log. */
  private logChange(name: string, report: CheckReport, cause: unknown): void {
    const before = this.lastStatus.get(name) ?? 'ok';
    this.lastStatus.set(name, report.status);
    if (before === report.status) return;
    const fields = { check: name, status: report.status, reason: report.reason, err: cause };
    if (report.status === 'ok') this.logger.info(fields, 'health check recovered');
    else this.logger.warn(fields, 'health check changed');
  }
}

class CheckTimeout extends Error {
  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`);
  }
}

/** GET /healthz (the process runs), GET /readyz (it can serve), GET /metrics (Prometheus text). */
@Controller()
export class HealthController {
  constructor(
    @Inject(HealthChecks) private readonly checks: HealthChecks,
    @Inject(Metrics) private readonly metrics: Metrics,
    @Inject(METRICS_TOKEN) private readonly metricsToken: string | null,
  ) {}

  @Get('healthz')
  @Header('cache-control', 'no-store')
  healthz(): { status: 'ok' } {
    return { status: 'ok' };
  }

  @Get('readyz')
  @Header('cache-control', 'no-store')
  async readyz(@Res({ passthrough: true }) reply: FastifyReply): Promise<Readiness> {
    const readiness = await this.checks.readiness();
    const serves = readiness.status === 'ready' || readiness.status === 'degraded';
    void reply.code(serves ? 200 : 503);
    return readiness;
  }

  @Get('metrics')
  async prometheus(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    if (this.metricsToken !== null && !isBearer(request.headers.authorization, this.metricsToken)) {
      throw new WeirError(
        'unauthenticated',
        'The metrics want their bearer token (METRICS_TOKEN).',
      );
    }
    await reply.type(this.metrics.registry.contentType).send(await this.metrics.registry.metrics());
  }
}

function isBearer(header: string | undefined, token: string): boolean {
  const given = Buffer.from(header ?? '');
  const wanted = Buffer.from(`Bearer ${token}`);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}
