import type { Metric, ScopeLevel, Window } from '@weir/domain';
import type { Language } from './language.js';

/** How a limit's refusal is told in one language. Amounts come formatted, with their unit or currency where it says so. */
export type RefusalText = {
  readonly levels: Readonly<Record<ScopeLevel, string>>;
  /** Units of what is counted; cost has its currency instead. */
  readonly metrics: Readonly<Record<Exclude<Metric, 'cost'>, string>>;
  readonly windows: Readonly<Record<Window, string>>;
  limit(parts: { amount: string; model: string | null; window: string | null }): string;
  state(amounts: { used: string; reserved: string; requested: string }): string;
  /** A cap with which the call would fit. */
  fitting(cap: number): string;
  blocked(who: Scope, limit: string): string;
  impossible(who: Scope, requested: string, limit: string, fitting: string | null): string;
  usedUp(
    who: Scope,
    limit: string,
    state: string,
    reset: { at: string; timeZone: string } | null,
    fitting: string | null,
  ): string;
  reached(who: Scope, limit: string, state: string, seconds: number): string;
  /** How a call's wait goes: `about` is null where nobody can tell, `atMost` is when it is refused. All in seconds. */
  waiting(wait: { position: number; of: number; about: number | null; atMost: number }): string;
};

type Scope = { readonly level: string; readonly name: string };

const en: RefusalText = {
  levels: { enterprise: 'enterprise', department: 'department', user: 'user', key: 'API key' },
  metrics: {
    requests: 'requests',
    tokens: 'tokens',
    input_tokens: 'input tokens',
    output_tokens: 'output tokens',
    concurrency: 'calls at the same time',
  },
  windows: {
    second: 'per second',
    minute: 'per minute',
    hour: 'per hour',
    day: 'a day',
    week: 'a week',
    month: 'a month',
    total: 'in all',
  },
  limit: ({ amount, model, window }) =>
    [amount, model === null ? null : `of the model "${model}"`, window]
      .filter((part) => part !== null)
      .join(' '),
  state: ({ used, reserved, requested }) =>
    `${used} used, ${reserved} reserved by running calls, ${requested} asked for by this call`,
  fitting: (cap) => `Setting max_tokens to ${cap} or less would fit.`,
  blocked: ({ level, name }, limit) =>
    `The ${level} "${name}" is blocked: its limit is ${limit}. Ask your administrator to raise it.`,
  impossible: ({ level, name }, requested, limit, fitting) =>
    `This call may need ${requested}, but the ${level} "${name}" may never use more than ${limit}. ${fitting ?? 'Ask for less, or ask your administrator to raise the limit.'}`,
  usedUp: ({ level, name }, limit, state, reset, fitting) => {
    const resets =
      reset === null
        ? 'It does not reset: ask your administrator to raise it.'
        : `It resets at ${reset.at} (${reset.timeZone}).`;
    return `The ${level} "${name}" has used up its budget: limit ${limit}, ${state}. ${resets}${fitting === null ? '' : ` ${fitting}`}`;
  },
  reached: ({ level, name }, limit, state, seconds) =>
    `The ${level} "${name}" has reached its limit of ${limit}: ${state}. Try again in ${seconds} s.`,
  waiting: ({ position, of, about, atMost }) =>
    `waiting, position ${position} of ${of}, ${about === null ? `for at most ${atMost} s more` : `about ${about} s`}`,
};

const zh: RefusalText = {
  levels: { enterprise: '企业', department: '部门', user: '用户', key: 'API 密钥' },
  metrics: {
    requests: '次请求',
    tokens: '个 token',
    input_tokens: '个输入 token',
    output_tokens: '个输出 token',
    concurrency: '个并发调用',
  },
  windows: {
    second: '每秒',
    minute: '每分钟',
    hour: '每小时',
    day: '每天',
    week: '每周',
    month: '每月',
    total: '总计',
  },
  limit: ({ amount, model, window }) =>
    [model === null ? null : `模型“${model}”`, window, amount]
      .filter((part) => part !== null)
      .join(' '),
  state: ({ used, reserved, requested }) =>
    `已用 ${used}，运行中的调用预留 ${reserved}，本次调用需要 ${requested}`,
  fitting: (cap) => `将 max_tokens 设为不超过 ${cap} 即可。`,
  blocked: ({ level, name }, limit) =>
    `${level}“${name}”已被停用：其限额为 ${limit}。请联系管理员提高限额。`,
  impossible: ({ level, name }, requested, limit, fitting) =>
    `本次调用可能需要 ${requested}，但${level}“${name}”的限额为 ${limit}，无法满足。${fitting ?? '请减少请求量，或联系管理员提高限额。'}`,
  usedUp: ({ level, name }, limit, state, reset, fitting) => {
    const resets =
      reset === null
        ? '该额度不会重置，请联系管理员提高。'
        : `将于 ${reset.at}（${reset.timeZone}）重置。`;
    return `${level}“${name}”的预算已用完：限额 ${limit}，${state}。${resets}${fitting ?? ''}`;
  },
  reached: ({ level, name }, limit, state, seconds) =>
    `${level}“${name}”已达到限额 ${limit}：${state}。请在 ${seconds} 秒后重试。`,
  waiting: ({ position, of, about, atMost }) =>
    `正在排队，第 ${position} 位，共 ${of} 位，${about === null ? `最多再等 ${atMost} 秒` : `预计还需约 ${about} 秒`}`,
};

export const refusalTexts: Readonly<Record<Language, RefusalText>> = { en, zh };
