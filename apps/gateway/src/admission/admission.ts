import {
  isCalendarWindow,
  newId,
  priceVersionAt,
  WeirError,
  type CallerPolicy,
  type Clock,
  type ModelDocument,
  type UsageEventDraft,
} from '@weir/domain';
import type { Logger } from '@weir/platform';
import type {
  Admitted,
  PolicyStore,
  QuotaEngine,
  Refused,
  Reservation,
  Violation,
} from '@weir/quota';
import { limitRefusal } from '../answers/limit-refusal.js';
import { modelFor, refreshed, type Caller } from '../caller/caller.js';
import { callerNames } from '../observe/refusal-log.js';
import type { AskedCall, MeteredRoute } from '../routes/metered-route.js';
import { busy, type AdaptiveLimits } from '../upstream/adaptive-limits.js';
import { chooseUpstream, type Candidate } from '../upstream/choose-upstream.js';
import type { BudgetOutlook } from './budget-outlook.js';
import type { DenyCache } from './deny-cache.js';
import {
  outputTokenPico,
  planOutput,
  promptPico,
  requirePrices,
  reservationOf,
  type CallPrice,
  type OutputPlan,
} from './reservation.js';

/** Prompt tokens; `estimated` where this is not the model's own count. */
export type PromptSize = { readonly tokens: number; readonly estimated: boolean };

/** A call that wants to be admitted. */
export type AdmissionRequest = {
  readonly caller: Caller;
  readonly route: MeteredRoute;
  readonly asked: AskedCall;
  readonly requestId: string;
  readonly attempt: number;
  /** Milliseconds that the call has waited for its turn. */
  readonly queueWaitMs: number;
  readonly tags: Readonly<Record<string, string>>;
  /** Upstreams that this call has tried before. */
  readonly tried: ReadonlySet<string>;
  readonly countPrompt: (upstreamModel: string) => Promise<PromptSize>;
};

/** An admitted call with all that serving and settling it needs. */
export type AdmittedCall = {
  readonly caller: Caller;
  readonly admitted: Admitted;
  readonly model: ModelDocument;
  readonly candidate: Candidate;
  readonly price: CallPrice;
  readonly promptTokens: number;
  readonly plan: OutputPlan;
  readonly reserve: Reservation;
  readonly draft: UsageEventDraft;
};

/** Policy changes that one admission follows; more in a row means that something else is wrong. */
const staleRoundsMax = 4;
/** A lowered cap below this helps nobody: the refusal says what is left. */
const loweredCapMin = 16;

/** Turns a call into a reservation at every level of its path, or into the error that says why not. */
export class Admission {
  constructor(
    private readonly engine: QuotaEngine,
    private readonly policies: PolicyStore,
    private readonly outlook: BudgetOutlook,
    private readonly denials: DenyCache,
    private readonly adaptive: AdaptiveLimits,
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly random: () => number,
  ) {}

  /**
   * Refuses a call that is sure to be refused whatever is in it, before its body is read.
   *
   * @throws WeirError: the limit's refusal.
   */
  refuseEarly(caller: Caller): void {
    const denial = this.denials.denialOf(caller.policy, null);
    if (denial !== null) throw refusalOf(denial, caller, null);
  }

  /**
   * Admits one attempt of a call.
   *
   * @returns null when every upstream of the model was tried before.
   * @throws WeirError: a limit's refusal, or why the model cannot be served to this caller.
   */
  async admit(request: AdmissionRequest): Promise<AdmittedCall | null> {
    let caller = request.caller;
    let loweredCap: number | null = null;
    let lastReserved = Number.POSITIVE_INFINITY;
    for (let staleRounds = 0; staleRounds < staleRoundsMax;) {
      const { policy } = caller;
      const { asked } = request;
      const model = modelFor(policy, asked.model, request.route);
      requireCapWithin(asked, model);
      const candidate = chooseUpstream(
        policy,
        model,
        request.tried,
        (each) => this.adaptive.hasRoom(each),
        this.random,
      );
      if (candidate === null) return null;
      if (candidate === 'busy') throw busy(model.alias);
      const price = this.priceOf(asked, model);
      const prompt = await request.countPrompt(candidate.upstreamModel);
      requirePromptWithin(prompt, model);
      const promptTokens = prompt.tokens;
      const needsOutlook = asked.outputCap === null && !asked.streamed && loweredCap === null;
      const budgetLeft = needsOutlook
        ? await this.outlook.outputTokensLeft({ policy, asked, price, promptTokens })
        : null;
      const plan = planOutput({ asked, model, promptTokens, budgetLeft, loweredCap });
      const reserve = reservationOf({
        asked,
        settings: policy.enterprise.settings,
        price,
        promptTokens,
        outputTokens: plan.reservedTokens,
      });
      const draft = this.draftOf(request, policy, model, candidate, price);
      const denial = this.denials.denialOf(policy, { reserve, model: model.alias });
      const result = denial ?? (await this.ask(policy, draft, reserve));
      if (result.outcome === 'stale') {
        staleRounds += 1;
        caller = await refreshed(caller, this.policies, this.clock);
        continue;
      }
      if (result.outcome === 'admitted') {
        if (needsOutlook) this.outlook.learn(policy, result.remaining);
        this.warn(result.warnings, draft);
        return {
          caller,
          admitted: result,
          model,
          candidate,
          price,
          promptTokens,
          plan,
          reserve,
          draft,
        };
      }
      const mayShrink =
        needsOutlook &&
        plan.reservedTokens < lastReserved &&
        plan.reservedTokens > model.defaultOutputReserve * asked.choices;
      if (mayShrink && onlyBudgets(result.violations)) {
        // The remainder that steered this reservation was out of date, as when several such calls come at once: what the
        // refusal says of it is not. Each round reserves less, so this ends.
        this.outlook.learnRefusal(policy, result.violations);
        lastReserved = plan.reservedTokens;
        continue;
      }
      const fittingCap = capThatFits(result.violations, {
        asked,
        price,
        promptTokens,
        windowPercent: policy.enterprise.settings.windowOutputReservePercent,
      });
      if (loweredCap === null && mayLower(policy, asked, result.violations, fittingCap)) {
        loweredCap = fittingCap;
        continue;
      }
      if (denial === null) this.denials.remember(policy, result);
      throw refusalOf(result, caller, fittingCap);
    }
    throw new WeirError(
      'quota_unavailable',
      'The limits are being changed just now. Try again in a second.',
      { headers: { 'retry-after': '1' } },
    );
  }

  private priceOf(asked: AskedCall, model: ModelDocument): CallPrice {
    const version = priceVersionAt(model.prices, this.clock.now());
    if (version === undefined) {
      throw new WeirError(
        'price_missing',
        `The model "${model.alias}" has no price at the moment, so its use cannot be accounted for. Ask your administrator to set it.`,
        { headers: { 'x-should-retry': 'false' } },
      );
    }
    requirePrices(asked, model, version);
    const { id, picoPerToken, picoPerRequest } = version;
    return { id, picoPerToken, picoPerRequest };
  }

  private async ask(policy: CallerPolicy, draft: UsageEventDraft, reserve: Reservation) {
    const leaseId = newId(this.clock.now());
    const lease = { id: leaseId, shard: policy.shard, enterpriseId: policy.enterprise.id };
    try {
      return await this.engine.admit({
        leaseId,
        shard: policy.shard,
        enterpriseId: policy.enterprise.id,
        timeZone: policy.enterprise.timeZone,
        policyVersion: policy.version,
        path: policy.path,
        model: draft.modelAsked,
        reserve,
        leaseMs: policy.enterprise.settings.leaseMs,
        draft,
      });
    } catch (error) {
      // The command may still run after its timeout: the void stops it, or frees what it reserved.
      this.engine.void(lease).catch((voidError: unknown) => {
        this.logger.debug(
          { err: voidError, lease: leaseId },
          'a void after a failed admission failed too',
        );
      });
      throw error;
    }
  }

  private draftOf(
    { route, asked, requestId, attempt, queueWaitMs, tags }: AdmissionRequest,
    policy: CallerPolicy,
    model: ModelDocument,
    candidate: Candidate,
    price: CallPrice,
  ): UsageEventDraft {
    const { enterprise, departments, user, key } = callerNames(policy);
    return {
      enterprise,
      departments,
      user,
      key,
      currency: policy.enterprise.currency,
      modelAsked: model.alias,
      modelServed: candidate.upstreamModel,
      provider: { id: candidate.upstream.id, name: candidate.upstream.name },
      route: route.path,
      streamed: asked.streamed,
      requestId,
      attempt,
      price,
      queueWaitMs,
      tags,
    };
  }

  private warn(warnings: readonly Violation[], draft: UsageEventDraft): void {
    if (warnings.length === 0) return;
    this.logger.info(
      {
        request_id: draft.requestId,
        limits: warnings.map(({ scope, metric, window, mode }) => ({
          level: scope.level,
          id: scope.id,
          metric,
          window,
          mode,
        })),
      },
      'a call passed limits that do not refuse',
    );
  }
}

function refusalOf(
  refused: Refused,
  { policy, language }: Caller,
  fittingCap: number | null,
): WeirError {
  const { currency, timeZone } = policy.enterprise;
  return limitRefusal(refused, { language, currency, timeZone, fittingCap });
}

function onlyBudgets(violations: readonly Violation[]): boolean {
  return violations.every(({ window, impossible }) => isCalendarWindow(window) && !impossible);
}

/** A cap beyond what the model can give is a mistake that the caller should know of, not one to reserve money for. */
function requireCapWithin(asked: AskedCall, model: ModelDocument): void {
  if (asked.outputCap === null || model.kind === 'embedding') return;
  if (asked.outputCap <= model.maxOutputTokens) return;
  throw new WeirError(
    'invalid_request',
    `The output cap is ${asked.outputCap} tokens, but "${model.alias}" gives at most ${model.maxOutputTokens}. Lower it or leave it out.`,
    { param: asked.capParam },
  );
}

/** Only a count that is surely right refuses a prompt; of an estimate the upstream is the judge. */
function requirePromptWithin(prompt: PromptSize, model: ModelDocument): void {
  if (prompt.estimated || prompt.tokens <= model.contextWindowTokens) return;
  throw new WeirError(
    'context_length_exceeded',
    `The prompt has ${prompt.tokens} tokens, but "${model.alias}" takes at most ${model.contextWindowTokens}. Shorten it.`,
    { param: 'messages' },
  );
}

/**
 * Output tokens per choice with which none of the violations would be there; null where fewer tokens do not help
 * (requests, concurrency, input tokens, or no room besides the prompt).
 */
export function capThatFits(
  violations: readonly Violation[],
  call: { asked: AskedCall; price: CallPrice; promptTokens: number; windowPercent: number },
): number | null {
  let least: bigint | null = null;
  for (const violation of violations) {
    const tokens = outputThatFits(violation, call);
    if (tokens === null) return null;
    if (least === null || tokens < least) least = tokens;
  }
  if (least === null) return null;
  const perChoice = least / BigInt(call.asked.choices);
  return perChoice >= 1n ? Number(perChoice) : null;
}

function outputThatFits(
  violation: Violation,
  call: { asked: AskedCall; price: CallPrice; promptTokens: number; windowPercent: number },
): bigint | null {
  const isBudget = isCalendarWindow(violation.window);
  // Of a sliding window that is merely full, waiting gives more than asking for less.
  if (!isBudget && !violation.impossible) return null;
  const left = isBudget ? violation.limit - violation.used - violation.reserved : violation.limit;
  const share = isBudget ? 100n : BigInt(call.windowPercent);
  switch (violation.metric) {
    case 'tokens':
      return share === 0n ? null : ((left - BigInt(call.promptTokens)) * 100n) / share;
    case 'output_tokens':
      return share === 0n ? null : (left * 100n) / share;
    case 'cost': {
      const unit = outputTokenPico(call.asked, call.price);
      const room = left * 1_000n - promptPico(call.asked, call.price, call.promptTokens);
      return unit === 0n ? null : room / unit;
    }
    default:
      return null;
  }
}

/**
 * Whether a refused call is tried again with a lower cap: where the enterprise chose `clamp`, and where the caller set no
 * cap at all and a limit is smaller than the default estimate, which nobody could know.
 */
function mayLower(
  policy: CallerPolicy,
  asked: AskedCall,
  violations: readonly Violation[],
  fittingCap: number | null,
): fittingCap is number {
  if (fittingCap === null || fittingCap < loweredCapMin) return false;
  if (asked.outputCap === null && violations.every(({ impossible }) => impossible)) return true;
  const clamps = policy.enterprise.settings.onCapBeyondBudget === 'clamp';
  return clamps && violations.every(({ window }) => isCalendarWindow(window));
}
