/** A run of text cut into the provider's tokens, endless: after the last sentence comes the first. */
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

  token(index: number): string {
    return this.tokens[index % this.tokens.length] ?? '';
  }

  text(start: number, from: number, to: number): string {
    let text = '';
    for (let index = start + from; index < start + to; index += 1) text += this.token(index);
    return text;
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
    'A weir holds back a river and measures how much of it flows.',
    'Every call is counted before it leaves and settled when it ends.',
    'The budget of a team is the sum of what its people may spend.',
    'When a stream stops early, only what was delivered is charged.',
    'Numbers that are written down twice should always agree.',
    'A quota is a promise, and a promise is kept at every moment.',
    'The ledger remembers each call once, whatever happens on the way.',
    'Small steady streams carry more water than a sudden flood.',
    'What is measured well can be shared fairly between many.',
    'At the end of the month the books are closed and nothing is missing.',
  ].map((sentence) => `${sentence} `.match(/\S+\s?/g) ?? []),
);

const chinese = new Prose(
  [
    '水坝拦住河流，也量出流过的水。',
    '每次调用在发出之前计数，在结束之后结算。',
    '部门的预算由所有成员共同使用。',
    '如果输出提前中断，只对已经送达的内容计费。',
    '账本对每次调用只记录一次，不多也不少。',
    '额度是一种承诺，每一刻都必须守住。',
    '细水长流，好过一时的洪水。',
    '量得准确，才能分得公平。',
    '月底结账时，每一笔都能找到来处。',
  ].map((sentence) => sentence.match(/[^，。]{1,2}[，。]?/gu) ?? []),
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
