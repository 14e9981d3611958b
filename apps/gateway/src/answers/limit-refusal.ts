import { formatNano, isCalendarWindow, WeirError, type ErrorCode, type Metric } from '@weir/domain';
import type { Refused, Violation } from '@weir/quota';
import type { Language } from './language.js';
import { refusalTexts } from './refusal-text.js';

export type RefusalContext = {
  /** Of the text for people; all else in the answer is the same in every language. */
  readonly language: Language;
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
    violations: refused.violations,
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
  const { metric, window, model, resetsAtMs } = violation;
  const text = refusalTexts[context.language];
  const who = { level: text.levels[violation.scope.level], name: violation.scope.name };
  const bare = (value: bigint): string =>
    metric === 'cost' ? `${formatNano(value)} ${context.currency}` : value.toLocaleString('en-US');
  const withUnit = (value: bigint): string =>
    metric === 'cost' ? bare(value) : `${bare(value)} ${text.metrics[metric]}`;
  const limit = text.limit({
    amount: withUnit(violation.limit),
    model,
    window: window === null ? null : text.windows[window],
  });
  if (violation.limit === 0n) return text.blocked(who, limit);
  const state = text.state({
    used: bare(violation.used),
    reserved: bare(violation.reserved),
    requested: bare(violation.requested),
  });
  const fitting = context.fittingCap === null ? null : text.fitting(context.fittingCap);
  switch (code) {
    case 'impossible_request':
      return text.impossible(who, withUnit(violation.requested), limit, fitting);
    case 'insufficient_quota': {
      const reset =
        resetsAtMs === null
          ? null
          : { at: new Date(resetsAtMs).toISOString(), timeZone: context.timeZone };
      return text.usedUp(who, limit, state, reset, fitting);
    }
    default: {
      const seconds = Math.max(1, Math.ceil((retryAfterMs ?? 1_000) / 1_000));
      return text.reached(who, limit, state, seconds);
    }
  }
}
