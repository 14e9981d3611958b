import type {
  CalendarWindow,
  LimitMode,
  Metric,
  PolicyScope,
  ScopeRef,
  UnnumberedUsageEvent,
  UsageEventDraft,
  Window,
} from '@weir/domain';

/** What a call may use at most; reserved at every level before it is sent upstream. All integers. */
export type Reservation = {
  /** Tokens that sliding windows reserve. */
  readonly windowInputTokens: number;
  readonly windowOutputTokens: number;
  /** Tokens that calendar budgets reserve. */
  readonly budgetInputTokens: number;
  readonly budgetOutputTokens: number;
  /** Nano-currency that money budgets reserve, rounded up. */
  readonly costNano: bigint;
};

export type AdmitCall = {
  /** UUIDv7, made once per upstream attempt; also the id of the usage event. Admitting it twice charges once. */
  readonly leaseId: string;
  readonly shard: number;
  readonly enterpriseId: string;
  /** Where calendar periods turn. */
  readonly timeZone: string;
  /** The version of the policy the caller was resolved with; an older one than the shard's is answered `stale`. */
  readonly policyVersion: number;
  /** Enterprise first, key last, each with its own limits. */
  readonly path: readonly PolicyScope[];
  readonly model: string;
  readonly reserve: Reservation;
  readonly leaseMs: number;
  /** Kept with the lease, so that the reaper can settle a dead gateway's call. */
  readonly draft: UsageEventDraft;
};

/** One limit that a call would pass. Amounts in the metric's unit (nano-currency for cost). */
export type Violation = {
  readonly scope: ScopeRef;
  readonly limitId: string;
  readonly metric: Metric;
  readonly window: Window | null;
  readonly model: string | null;
  readonly mode: LimitMode;
  readonly limit: bigint;
  readonly used: bigint;
  readonly reserved: bigint;
  readonly requested: bigint;
  /** When the period ends (calendar windows), milliseconds since the Unix epoch; else null. */
  readonly resetsAtMs: number | null;
  /** Milliseconds until this limit alone would admit the call, or null where waiting does not help. */
  readonly retryAfterMs: number | null;
  /** The call asks for more than the limit could ever give. */
  readonly impossible: boolean;
};

/** What is left of one limit after the call; for response headers, from the admit's own trip. */
export type Remaining = {
  readonly scope: ScopeRef;
  readonly limitId: string;
  readonly metric: Metric;
  readonly window: Window | null;
  readonly model: string | null;
  readonly limit: bigint;
  readonly remaining: bigint;
  /** Milliseconds until the window is full again (sliding) or the period ends (calendar); null for concurrency and `total`. */
  readonly resetMs: number | null;
};

export type Admitted = {
  readonly outcome: 'admitted';
  readonly lease: Lease;
  readonly remaining: readonly Remaining[];
  /** Limits in `soft` or `shadow` mode that the call passes. */
  readonly warnings: readonly Violation[];
  /** True when admitted by the local engine while Redis was away. */
  readonly degraded: boolean;
};

export type Refused = {
  readonly outcome: 'refused';
  /** Every hard limit that is in the way, the narrowest scope first. Never empty. */
  readonly violations: readonly Violation[];
  /** The longest wait needed, honest: waiting exactly that long admits the call. null where waiting does not help. */
  readonly retryAfterMs: number | null;
};

/** The caller's policy is out of date: reload it and try again. Nothing was reserved. */
export type Stale = { readonly outcome: 'stale'; readonly currentVersion: number };

export type AdmitResult = Admitted | Refused | Stale;

/** What identifies an admitted call to the engine. Everything else that settling needs is kept with the lease in Redis. */
export type Lease = {
  readonly id: string;
  readonly shard: number;
  readonly enterpriseId: string;
  readonly reservedAtMs: number;
  readonly expiresAtMs: number;
  /** The enterprise's month of the reservation, such as `2026-11`. */
  readonly periodId: string;
  /** The shard's epoch at the admission; absent when the local engine admitted. A call of an epoch that was lost is booked all the same. */
  readonly epoch?: string;
};

/** More of a running call's budget (the taximeter). Sliding windows are charged but never refuse a running stream. */
export type ExtendBy = {
  readonly outputTokens: number;
  readonly costNano: bigint;
  /** What the stream has used so far; charged if the lease should expire. */
  readonly observed: Observed;
};

/** A running call's use so far, kept with the lease: an expired lease is charged this. */
export type Observed = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costNano: bigint;
};

export type Extended =
  | { readonly outcome: 'granted'; readonly expiresAtMs: number }
  | { readonly outcome: 'refused'; readonly violations: readonly Violation[] }
  /** The lease has ended (expired, voided or settled): the stream must end. */
  | { readonly outcome: 'gone' };

/** What the call really used, in the same units as the reservation. */
export type Actual = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costNano: bigint;
};

export type SettleResult =
  | { readonly outcome: 'settled'; readonly seq: number; readonly epoch: string }
  /** Settled before: nothing changed. */
  | { readonly outcome: 'already_settled' }
  /** The lease had expired and was charged by the reaper: an adjustment event was appended for the difference. */
  | { readonly outcome: 'late'; readonly seq: number; readonly epoch: string }
  /** The call was voided or never admitted: nothing was charged. */
  | { readonly outcome: 'void' };

export type ScopeUsage = {
  readonly scopeId: string;
  readonly inFlight: number;
  readonly month: {
    readonly periodId: string;
    readonly requests: bigint;
    readonly tokens: bigint;
    readonly inputTokens: bigint;
    readonly outputTokens: bigint;
    readonly costNano: bigint;
    readonly reservedTokens: bigint;
    readonly reservedCostNano: bigint;
  };
  /** One entry per limit of the scope that was asked for. */
  readonly limits: readonly {
    readonly limitId: string;
    readonly metric: Metric;
    readonly window: Window | null;
    readonly limit: bigint | null;
    readonly used: bigint;
    readonly reserved: bigint;
    readonly resetsAtMs: number | null;
  }[];
};

/** A lease that has run out, as the reaper finds it. */
export type ExpiredLease = {
  readonly lease: Lease;
  readonly draft: UsageEventDraft;
  readonly observed: Observed | null;
  readonly reserved: Reservation;
};

/**
 * Cascaded admission over a path of scopes. One Redis round trip and one script per operation; the local fallback
 * implements the same interface.
 *
 * All operations reject with WeirError `quota_unavailable` when the store cannot be asked within its timeout.
 */
export type QuotaEngine = {
  admit(call: AdmitCall): Promise<AdmitResult>;
  extend(lease: Lease, by: ExtendBy): Promise<Extended>;
  /** Heartbeats, batched per shard. Returns the ids of the leases that are still alive. */
  renew(
    leases: readonly {
      readonly lease: Lease;
      readonly observed: Observed | null;
      readonly leaseMs: number;
    }[],
  ): Promise<ReadonlySet<string>>;
  /**
   * Corrects every counter, frees the slot, numbers the event and appends it to the outbox, in one step. Idempotent. What
   * this process asks afterwards is asked of the counters as they are then: all of it goes over one connection, and leaves
   * at the end of the turn of the event loop in which it was given.
   */
  settle(lease: Lease, actual: Actual, event: UnnumberedUsageEvent): Promise<SettleResult>;
  /** Frees all and charges nothing: the call never reached an upstream. Idempotent; also stops an admit that arrives later. */
  void(lease: Pick<Lease, 'id' | 'shard' | 'enterpriseId'>): Promise<void>;
  peek(query: {
    readonly shard: number;
    readonly enterpriseId: string;
    readonly timeZone: string;
    readonly scopes: readonly PolicyScope[];
  }): Promise<readonly ScopeUsage[]>;
};

/** Counters of one scope and period as the ledger's roll-ups have them; used to seed a new epoch or a new limit. */
export type CounterSeed = {
  readonly scopeId: string;
  readonly window: CalendarWindow;
  readonly periodId: string;
  /** null: all models together. */
  readonly model: string | null;
  readonly requests: bigint;
  readonly inputTokens: bigint;
  readonly outputTokens: bigint;
  readonly costNano: bigint;
};
