/**
 * A run of text cut into its tokens of o200k_base, endless: after the last sentence comes the first. Any part of it that
 * begins with a sentence has as many tokens for a tokenizer as it was cut from.
 */
class Prose {
  private readonly tokens: readonly string[];
  /** Index of each sentence's first token. */
  private readonly starts: readonly number[];

  constructor(sentences: readonly (readonly string[])[]) {
    this.tokens = sentences.flat();
    const starts: number[] = [];
    let next = 0;
    for (const sentence of sentences) {
      starts.push(next);
      next += sentence.length;
    }
    this.starts = starts;
  }

  startFor(seed: number): number {
    return this.starts[seed % this.starts.length] ?? 0;
  }

  /** The tokens `from` (included) to `to` (excluded) of the answer that begins at `start`. */
  text(start: number, from: number, to: number): string {
    let text = '';
    for (let index = start + from; index < start + to; index += 1) {
      text += this.tokens[index % this.tokens.length] ?? '';
    }
    // The blank before a sentence belongs to its first word, and not at the beginning of an answer.
    return from === 0 ? text.trimStart() : text;
  }

  /** The least number of tokens, at least `atLeast`, after which a sentence ends. */
  wholeSentences(start: number, atLeast: number): number {
    const cycle = this.tokens.length;
    for (let count = atLeast; count < atLeast + cycle; count += 1) {
      if (this.starts.includes((start + count) % cycle)) return count;
    }
    return atLeast;
  }
}

const english = new Prose(
  [
    'A dam holds back a river and measures how much of it flows.',
    'Every call is counted before it leaves and settled when it ends.',
    'The budget of a team is the sum of what its people may spend.',
    'When a stream stops early, only what was delivered is charged.',
    'Numbers that are written down twice should always agree.',
    'A quota is a promise, and a promise is kept at every moment.',
    'The ledger remembers each call once, whatever happens on the way.',
    'Small steady streams carry more water than a sudden flood.',
    'What is measured well can be shared fairly between many.',
    'At the end of the month the books are closed and nothing is missing.',
  ].map((sentence) => ` ${sentence}`.match(/ \w+|[.,]/g) ?? []),
);

const chinese = new Prose(
  [
    '水|坝|挡|住|河|流|，也|量|出|流|过|的|水|。',
    '每|次|调用|在|发|出|之前|计|数|，在|结束|之后|结|算|。',
    '部门|的|预算|由|所有|成员|共同|使用|。',
    '输出|提前|中|断|时|，只|对|已经|送|达|的|内容|计|费|。',
    '账|本|对|每|次|调用|只|记录|一次|，不|多|也|不少|。',
    '额度|是一|种|承|诺|，每|一|刻|都|必须|守|住|。',
    '细|水|长|流|，好|过|一|时|的|洪|水|。',
    '量|得|准确|，|才能|分|得|公平|。',
    '月底|结|账|时|，每|一|笔|都|能|找到|来|处|。',
  ].map((sentence) => sentence.split('|')),
);

export type { Prose };

/** Answers are in the language of the prompt. */
export function proseFor(prompt: string): Prose {
  return /[\u3400-\u9fff]/.test(prompt) ? chinese : english;
}

/** FNV-1a over UTF-16 units: the same prompt always gets the same answer. */
export function seedOf(prompt: string): number {
  let hash = 0x811c9dc5;
  const length = Math.min(prompt.length, 2_048);
  for (let index = 0; index < length; index += 1) {
    hash = Math.imul(hash ^ prompt.charCodeAt(index), 0x01000193);
  }
  return (hash ^ prompt.length) >>> 0;
}
