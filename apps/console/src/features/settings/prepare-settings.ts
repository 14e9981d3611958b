import {
  enterpriseSettingsFields,
  ipRulesMax,
  ipRulesSchema,
  queueSettingsSchema,
  type EnterpriseSettings,
  type QueueSettings,
} from '@weir/domain';

/** Rules as people type or paste them: one to a line, or with commas or blanks between them. */
export function readRules(text: string): string[] {
  return text.split(/[\s,;，；、]+/).filter((rule) => rule !== '');
}

/** What is wrong with a list of rules, or null. */
export function ruleFault(
  text: string,
): { kind: 'rule'; rule: string } | { kind: 'tooMany'; max: number } | null {
  const rules = readRules(text);
  if (rules.length > ipRulesMax) return { kind: 'tooMany', max: ipRulesMax };
  const rule = rules.find((each) => !ipRulesSchema.shape.allow.element.safeParse(each).success);
  return rule === undefined ? null : { kind: 'rule', rule };
}

export type QueueValues = {
  waits: boolean;
  /** As typed. */
  seconds: string;
  waiting: string;
  notices: boolean;
};

/** What the form suggests when waiting is turned on. */
const suggestedMs = 30_000;

export function queueValuesOf({
  maxWaitMs,
  maxWaiting,
  streamNotices,
}: QueueSettings): QueueValues {
  return {
    waits: maxWaitMs > 0,
    seconds: String((maxWaitMs > 0 ? maxWaitMs : suggestedMs) / 1_000),
    waiting: String(maxWaiting),
    notices: streamNotices,
  };
}

export const queueMax = {
  seconds: (queueSettingsSchema.shape.maxWaitMs.maxValue ?? 0) / 1_000,
  waiting: queueSettingsSchema.shape.maxWaiting.maxValue ?? 0,
};

/** The setting that a form stands for, or which of its fields cannot be read. Waiting turned off leaves the rest alone. */
export function readQueue(
  values: QueueValues,
): { queue: Partial<QueueSettings> } | { faulty: ('seconds' | 'waiting')[] } {
  if (!values.waits) return { queue: { maxWaitMs: 0 } };
  const { shape } = queueSettingsSchema;
  // What waits at all waits for longer than nothing, and is at least one call.
  const maxWaitMs = within(readMs(values.seconds), shape.maxWaitMs.min(1));
  const maxWaiting = within(readWhole(values.waiting), shape.maxWaiting.min(1));
  if (maxWaitMs === null || maxWaiting === null) {
    const faulty: ('seconds' | 'waiting')[] = [];
    if (maxWaitMs === null) faulty.push('seconds');
    if (maxWaiting === null) faulty.push('waiting');
    return { faulty };
  }
  return { queue: { maxWaitMs, maxWaiting, streamNotices: values.notices } };
}

export type EdgeValues = {
  onCapBeyondBudget: EnterpriseSettings['onCapBeyondBudget'];
  degradedMode: EnterpriseSettings['degradedMode'];
  /** As typed: percent and seconds. */
  windowPercent: string;
  degradedPercent: string;
  leaseSeconds: string;
};
export const edgeNumbers = ['windowPercent', 'degradedPercent', 'leaseSeconds'] as const;

export function edgeValuesOf(settings: EnterpriseSettings): EdgeValues {
  return {
    onCapBeyondBudget: settings.onCapBeyondBudget,
    degradedMode: settings.degradedMode,
    windowPercent: String(settings.windowOutputReservePercent),
    degradedPercent: String(settings.degradedBudgetSharePercent),
    leaseSeconds: String(settings.leaseMs / 1_000),
  };
}

/** The settings that a form stands for, or which of its numbers cannot be read. */
export function readEdge({
  onCapBeyondBudget,
  degradedMode,
  ...typed
}: EdgeValues): { edge: Partial<EnterpriseSettings> } | { faulty: (typeof edgeNumbers)[number][] } {
  const { shape } = enterpriseSettingsFields;
  const numbers = {
    windowPercent: within(readWhole(typed.windowPercent), shape.windowOutputReservePercent),
    degradedPercent: within(readWhole(typed.degradedPercent), shape.degradedBudgetSharePercent),
    leaseSeconds: within(readMs(typed.leaseSeconds), shape.leaseMs),
  };
  const { windowPercent, degradedPercent, leaseSeconds } = numbers;
  if (windowPercent === null || degradedPercent === null || leaseSeconds === null) {
    return { faulty: edgeNumbers.filter((name) => numbers[name] === null) };
  }
  return {
    edge: {
      onCapBeyondBudget,
      degradedMode,
      windowOutputReservePercent: windowPercent,
      degradedBudgetSharePercent: degradedPercent,
      leaseMs: leaseSeconds,
    },
  };
}

/** Seconds as typed, with up to three decimals, in milliseconds. */
function readMs(text: string): number {
  const typed = text.trim();
  if (!/^\d+([.,]\d{1,3})?$/.test(typed)) return Number.NaN;
  return Math.round(Number(typed.replace(',', '.')) * 1_000);
}

function readWhole(text: string): number {
  const typed = text.trim();
  return /^\d+$/.test(typed) ? Number(typed) : Number.NaN;
}

function within(
  value: number,
  schema: { safeParse(value: number): { success: boolean } },
): number | null {
  return schema.safeParse(value).success ? value : null;
}
