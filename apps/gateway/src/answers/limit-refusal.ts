import {
  formatNano,
  isCalendarWindow,
  WeirError,
  type ErrorCode,
  type Metric,
  type ScopeLevel,
  type Window,
} from '@weir/domain';
import type { Refused, Violation } from '@weir/quota';

const levelNames: Readonly<Record<ScopeLevel, string>> = {
  enterprise: 'enterprise',
  department: 'department',
  user: 'user',
  key: 'API key',
};

const metricNames: Readonly<Record<Metric, string>> = {
  requests: 'requests',
  tokens: 'tokens',
  input_tokens: 'input tokens',
  output_tokens: 'output tokens',
  cost: 'money',
  concurrency: 'calls at the same time',
};

const windowNames: Readonly<Record<Window, string>> = {
  second: 'per second',
  minute: 'per minute',
  hour: 'per hour',
  day: 'a day',
  week: 'a week',
  month: 'a month',
  total: 'in all',
};

export type RefusalContext = {
  readonly currency: string;
  readonly timeZone: string;
  /** Output tokens per call that would fit, when the caller could ask for fewer; else null. */
  readonly fittingCap: number | null;
};

/**
 * Which of several violations the answer names: one that waiting does not help comes before one that it does, and the
 * narrowest scope first, as the engine sorts them.
 */
export function decisiveViolation(violations: readonly Violation[]): Violation {
  const decisive =
    violations.find((violation) => violation.impossible || violation.limit === 0n) ??
    violations.find((violation) => isBudget(violation)) ??
    violations[0];
  if (decisive === undefined) throw new Error('a refusal must name at least one violation');
  return decisive;
}

function isBudget(violation: Violation): boolean {
  return isCalendarWindow(violation.window);
}

function codeOf(violation: Violation): ErrorCode {
  // A limit of 0 blocks on purpose: asking for less would not help, and neither would waiting.
  if (violation.limit === 0n) return 'insufficient_quota';
  if (violation.impossible) return 'impossible_request';
  if (violation.metric === 'concurrency') return 'concurrency_exceeded';
  return isBudget(violation) ? 'insufficient_quota' : 'rate_limit_exceeded';
}

/** The answer to a call that a limit refuses: which level, which limit, what is used and when there is room again. */
export function limitRefusal(refused: Refused, context: RefusalContext): WeirError {
  const violation = decisiveViolation(refused.violations);
  const code = codeOf(violation);
  const retries = code === 'rate_limit_exceeded' || code === 'concurrency_exceeded';
  const retryAfterMs = retries ? Math.max(1, refused.retryAfterMs ?? 1_000) : null;
  const headers: Record<string, string> =
    retryAfterMs === null
      ? { 'x-should-retry': 'false' }
      : {
          'retry-after': String(Math.max(1, Math.ceil(retryAfterMs / 1_000))),
          'retry-after-ms': String(Math.ceil(retryAfterMs)),
        };
  const isTokenRate =
    violation.metric === 'tokens' ||
    violation.metric === 'input_tokens' ||
    violation.metric === 'output_tokens';
  return new WeirError(code, messageOf(violation, code, retryAfterMs, context), {
    ...(code === 'rate_limit_exceeded' ? { type: isTokenRate ? 'tokens' : 'requests' } : {}),
    headers,
    retry_after_ms: retryAfterMs,
    violation,
    weir: {
      ...weirPart(violation, context),
      violations: refused.violations.map((each) => weirPart(each, context)),
    },
  });
}

function weirPart(violation: Violation, context: RefusalContext): Record<string, unknown> {
  const amount = (value: bigint): string | number =>
    violation.metric === 'cost' || value > BigInt(Number.MAX_SAFE_INTEGER)
      ? formatNumber(violation.metric, value)
      : Number(value);
  return {
    level: violation.scope.level,
    id: violation.scope.id,
    name: violation.scope.name,
    metric: violation.metric,
    window: violation.window,
    model: violation.model,
    limit: amount(violation.limit),
    used: amount(violation.used),
    reserved: amount(violation.reserved),
    requested: amount(violation.requested),
    ...(violation.metric === 'cost' ? { currency: context.currency } : {}),
    resets_at: violation.resetsAtMs === null ? null : new Date(violation.resetsAtMs).toISOString(),
    retry_after_ms: violation.retryAfterMs,
  };
}

function formatNumber(metric: Metric, value: bigint): string {
  return metric === 'cost' ? formatNano(value) : value.toString();
}

function messageOf(
  violation: Violation,
  code: ErrorCode,
  retryAfterMs: number | null,
  context: RefusalContext,
): string {
  const who = `The ${levelNames[violation.scope.level]} "${violation.scope.name}"`;
  const forModel = violation.model === null ? '' : ` of the model "${violation.model}"`;
  const amount = (value: bigint): string =>
    violation.metric === 'cost'
      ? `${formatNano(value)} ${context.currency}`
      : value.toLocaleString('en-US');
  const unit = violation.metric === 'cost' ? '' : ` ${metricNames[violation.metric]}`;
  const window = violation.window === null ? '' : ` ${windowNames[violation.window]}`;
  const limit = `${amount(violation.limit)}${unit}${forModel}${window}`;
  if (violation.limit === 0n) {
    return `${who} is blocked: its limit is ${limit}. Ask your administrator to raise it.`;
  }
  const state = `${amount(violation.used)} used, ${amount(violation.reserved)} reserved by running calls, ${amount(violation.requested)} asked for by this call`;
  const lower =
    context.fittingCap === null
      ? ''
      : ` Setting max_tokens to ${context.fittingCap} or less would fit.`;
  switch (code) {
    case 'impossible_request':
      return `This call may need ${amount(violation.requested)}${unit}, but ${who.replace(/^The/, 'the')} may never use more than ${limit}.${lower || ' Ask for less, or ask your administrator to raise the limit.'}`;
    case 'insufficient_quota': {
      const reset =
        violation.resetsAtMs === null
          ? 'It does not reset: ask your administrator to raise it.'
          : `It resets at ${new Date(violation.resetsAtMs).toISOString()} (${context.timeZone}).`;
      return `${who} has used up its budget: limit ${limit}, ${state}. ${reset}${lower}`;
    }
    default: {
      const seconds = Math.max(1, Math.ceil((retryAfterMs ?? 1_000) / 1_000));
      return `${who} has reached its limit of ${limit}: ${state}. Try again in ${seconds} s.`;
    }
  }
}
