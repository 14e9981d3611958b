import { ipRulesMax, ipRulesSchema, queueSettingsSchema, type QueueSettings } from '@weir/domain';

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
  const faulty: ('seconds' | 'waiting')[] = [];
  const maxWaitMs = Math.round(Number(values.seconds.trim().replace(',', '.')) * 1_000);
  if (!/^\d+([.,]\d{1,3})?$/.test(values.seconds.trim()) || !isWithin(maxWaitMs, 'maxWaitMs')) {
    faulty.push('seconds');
  }
  const maxWaiting = Number(values.waiting.trim());
  if (!/^\d+$/.test(values.waiting.trim()) || !isWithin(maxWaiting, 'maxWaiting')) {
    faulty.push('waiting');
  }
  if (faulty.length > 0) return { faulty };
  return { queue: { maxWaitMs, maxWaiting, streamNotices: values.notices } };
}

/** What waits at all waits for longer than nothing, and is at least one call. */
function isWithin(value: number, field: 'maxWaitMs' | 'maxWaiting'): boolean {
  return value > 0 && queueSettingsSchema.shape[field].safeParse(value).success;
}
