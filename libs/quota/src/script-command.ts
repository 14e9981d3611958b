import { Command } from 'ioredis';

/** Room for about ten calls, so that not each of them needs memory of its own outside of the heap. */
const slabBytes = 64 * 1024;
/** Of one argument, beside its bytes: `$`, its length and two line ends. */
const framingBytes = 24;

let slab = Buffer.alloc(0);
let used = 0;

/**
 * A call of a script, written as one piece of memory. ioredis' own way makes a list of pieces and a buffer for each call;
 * how it is queued, answered and, in a cluster, routed stays ioredis' affair.
 */
export class ScriptCommand extends Command {
  /** @param fence a key and an argument that go before the others. */
  constructor(
    name: 'evalsha' | 'eval',
    private readonly script: string,
    private readonly scriptKeys: readonly string[],
    private readonly scriptArgs: readonly Argument[],
    private readonly fence: Fenced | null = null,
  ) {
    // ioredis copies and looks through whatever it is given: it needs to know the keys alone.
    super(name, [], { replyEncoding: null });
  }

  override getKeys(): string[] {
    return this.fence === null ? [...this.scriptKeys] : [this.fence.key, ...this.scriptKeys];
  }

  override toWritable(): Buffer {
    const { script, fence, scriptKeys: keys, scriptArgs: args } = this;
    return fence === null
      ? encodeCommand(this.name, [script, String(keys.length)], keys, args)
      : encodeCommand(
          this.name,
          [script, String(keys.length + 1), fence.key],
          keys,
          [fence.epoch],
          args,
        );
  }
}

type Argument = string | Buffer;
/** The key of a shard's epoch, and the epoch that is expected there. */
export type Fenced = { readonly key: string; readonly epoch: string };

/** An array of bulk strings (Redis serialization protocol), the name first, then the lists one after the other. */
export function encodeCommand(name: string, ...lists: readonly (readonly Argument[])[]): Buffer {
  // A UTF-16 unit takes three bytes at most.
  let bytesMax = 2 * framingBytes + name.length * 3;
  let count = 1;
  for (const list of lists) {
    count += list.length;
    for (const arg of list) {
      bytesMax += framingBytes + (typeof arg === 'string' ? arg.length * 3 : arg.length);
    }
  }
  if (slab.length - used < bytesMax) {
    slab = Buffer.allocUnsafeSlow(Math.max(slabBytes, bytesMax));
    used = 0;
  }
  const start = used;
  writeHead(asterisk, count);
  writeBulk(name);
  for (const list of lists) {
    for (const arg of list) writeBulk(arg);
  }
  return slab.subarray(start, used);
}

const asterisk = 0x2a;
const dollar = 0x24;

function writeBulk(item: string | Buffer): void {
  if (typeof item === 'string') {
    writeHead(dollar, Buffer.byteLength(item));
    used += slab.write(item, used);
  } else {
    writeHead(dollar, item.length);
    slab.set(item, used);
    used += item.length;
  }
  writeLineEnd();
}

function writeHead(kind: number, count: number): void {
  slab[used] = kind;
  used += 1;
  let digits = 1;
  for (let rest = count; rest >= 10; rest = Math.floor(rest / 10)) digits += 1;
  let rest = count;
  for (let at = used + digits - 1; at >= used; at -= 1) {
    slab[at] = 0x30 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
  used += digits;
  writeLineEnd();
}

function writeLineEnd(): void {
  slab[used] = 0x0d;
  slab[used + 1] = 0x0a;
  used += 2;
}
