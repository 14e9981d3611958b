import { Controller, Inject } from '@nestjs/common';
import { shardOf, WeirError, type Clock } from '@weir/domain';
import {
  acceptHole,
  findDeadLetters,
  listDeadLetters,
  UsageLedger,
  type Database,
  type DeadLetter,
} from '@weir/persistence';
import { z } from 'zod';
import { notFound } from '../access/reach.js';
import type { ControlConfig } from '../config.js';
import { Changes } from '../control/changes.js';
import { beforeCursor } from '../control/pages.js';
import { Operation, type AnswerOf, type CallOf } from '../http/operation.js';
import { CLOCK, CONTROL_CONFIG, DATABASE } from '../tokens.js';

/** Dead letters looked through for one page, and per query: most may be another enterprise's. */
const scannedMax = 2_000;
const scannedAtOnce = 200;
const valueShownMax = 20_000;

const decoder = new TextDecoder('utf-8', { fatal: true });
const ownerSchema = z.object({
  data: z.object({ enterprise: z.object({ id: z.string() }) }),
});

/** What stands in the way of complete books, and a person can clear. */
@Controller()
export class ClearingController {
  private readonly ledger: UsageLedger;

  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(CONTROL_CONFIG) private readonly config: ControlConfig,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly changes: Changes,
  ) {
    this.ledger = new UsageLedger(database.pool, { clock });
  }

  @Operation('listDeadLetters')
  async list({ actor, query }: CallOf<'listDeadLetters'>): Promise<AnswerOf<'listDeadLetters'>> {
    let before = beforeCursor(query.cursor).id?.lt;
    const items: AnswerOf<'listDeadLetters'>['items'] = [];
    for (let scanned = 0; scanned < scannedMax; scanned += scannedAtOnce) {
      const letters = await listDeadLetters(this.database.pool, {
        limit: scannedAtOnce,
        ...(before === undefined ? {} : { before }),
      });
      for (const letter of letters) {
        before = letter.id;
        const text = textOf(letter);
        if (text === null || enterpriseOf(text) !== actor.enterpriseId) continue;
        items.push(letterView(letter, text));
        if (items.length === query.limit) return { items, nextCursor: letter.id };
      }
      if (letters.length < scannedAtOnce) return { items, nextCursor: null };
    }
    return { items, nextCursor: before ?? null };
  }

  @Operation('replayDeadLetter')
  async replay(call: CallOf<'replayDeadLetter'>): Promise<AnswerOf<'replayDeadLetter'>> {
    const { actor, id } = call;
    const [letter] = await findDeadLetters(this.database.pool, [id]);
    const text = letter === undefined ? null : textOf(letter);
    if (text === null || enterpriseOf(text) !== actor.enterpriseId) {
      throw notFound('dead letter', id);
    }
    const { replayed } = await this.ledger.replayDeadLetters([id]);
    const booked = replayed === 1;
    // Booking twice is booking once, so a call that failed before this entry is made good by another.
    return this.changes.run(call, async (_tx, record) => {
      record({
        targetType: 'dead-letter',
        targetId: id,
        targetName: id,
        action: 'dead-letter.replayed',
        before: { reason: letter?.reason, replayedAt: letter?.replayedAt?.toISOString() ?? null },
        after: { booked },
      });
      return Promise.resolve({ booked });
    });
  }

  @Operation('acceptHole')
  async accept(call: CallOf<'acceptHole'>): Promise<AnswerOf<'acceptHole'>> {
    const { actor, body } = call;
    const own = shardOf(actor.enterpriseId, this.config.SHARD_COUNT);
    if (body.shard !== own) {
      throw new WeirError('not_found', `This enterprise is not on shard ${body.shard}.`);
    }
    const all = await this.database.prisma.enterprise.findMany({ select: { id: true } });
    const isShared = all.some(
      ({ id }) => id !== actor.enterpriseId && shardOf(id, this.config.SHARD_COUNT) === own,
    );
    if (isShared) {
      // Numbers are the shard's: whose events are missing, nobody knows.
      throw new WeirError(
        'conflict',
        'Other enterprises are on this shard, and the missing events may be theirs.',
        { shard: own },
      );
    }
    await acceptHole(this.database.pool, { ...body, acceptedBy: actor.name }, this.clock.now());
    await this.changes.run(call, async (_tx, record) => {
      const target = `${body.shard}/${body.epoch}/${body.fromSeq}-${body.toSeq}`;
      record({
        targetType: 'hole',
        targetId: target,
        targetName: target,
        action: 'hole.accepted',
        before: null,
        after: body,
      });
      return Promise.resolve();
    });
  }
}

function textOf(letter: DeadLetter): string | null {
  try {
    return decoder.decode(letter.value);
  } catch {
    return null; // Not a text, hence of no enterprise that could be named.
  }
}

/**
 * Whose record it is: only a whole JSON that names its enterprise says so. Anything else might hold another's data and is
 * shown to nobody; it is counted in the metering status, and `replay` of the worker books it once it can be read.
 */
function enterpriseOf(text: string): string | null {
  try {
    const owner = ownerSchema.safeParse(JSON.parse(text));
    return owner.success ? owner.data.data.enterprise.id.toLowerCase() : null;
  } catch {
    return null; // Not JSON.
  }
}

function letterView(
  letter: DeadLetter,
  text: string,
): AnswerOf<'listDeadLetters'>['items'][number] {
  return {
    id: letter.id,
    at: letter.at.toISOString(),
    topic: letter.topic,
    partition: letter.partition,
    offset: letter.offset.toString(),
    reason: letter.reason,
    replayedAt: letter.replayedAt?.toISOString() ?? null,
    value: text.slice(0, valueShownMax),
  };
}
