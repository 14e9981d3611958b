import { createHash, randomBytes } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { roles, type Clock, type Role } from '@weir/domain';
import type { Database, Prisma } from '@weir/persistence';
import type { Actor } from '../access/actor.js';
import { reachOf } from '../access/reach.js';
import { ADMIN_CONFIG, CLOCK, DATABASE } from '../tokens.js';
import type { AdminConfig } from '../config.js';

export type Session = {
  readonly sha256: string;
  readonly csrfToken: string;
  readonly actor: Actor;
};

/** A session's last use is written at most this often: reading must not become writing. */
const lastSeenStepMs = 60_000;
const tokenPattern = /^[\w-]{43}$/;

/** Sessions in Postgres, so that any API process knows them and ending one ends it everywhere. */
@Injectable()
export class Sessions {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(ADMIN_CONFIG) private readonly config: AdminConfig,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** Starts a session. The token goes into the cookie; only its hash is stored. */
  async start(userId: string): Promise<{ token: string; csrfToken: string }> {
    const token = randomBytes(32).toString('base64url');
    const csrfToken = randomBytes(32).toString('base64url');
    const now = this.clock.now();
    await this.database.prisma.adminSession.create({
      data: {
        sha256: sha256Of(token),
        userId,
        csrfToken,
        createdAt: new Date(now),
        lastSeenAt: new Date(now),
        expiresAt: new Date(now + this.config.SESSION_TTL * 1_000),
      },
    });
    return { token, csrfToken };
  }

  /** The session of a cookie's token, or null: unknown, expired, idle too long, or its user may no longer sign in. */
  async find(token: string | undefined): Promise<Session | null> {
    if (token === undefined || !tokenPattern.test(token)) return null;
    const { prisma } = this.database;
    const row = await prisma.adminSession.findUnique({
      where: { sha256: sha256Of(token) },
      include: {
        user: {
          select: {
            id: true,
            name: true,
            role: true,
            status: true,
            enterpriseId: true,
            departmentId: true,
          },
        },
      },
    });
    if (row === null) return null;
    const now = this.clock.now();
    const idleSince = row.lastSeenAt.getTime();
    const isOver =
      row.expiresAt.getTime() <= now ||
      idleSince + this.config.SESSION_IDLE_TTL * 1_000 <= now ||
      row.user.status !== 'active';
    if (isOver) {
      await prisma.adminSession.deleteMany({ where: { sha256: row.sha256 } });
      return null;
    }
    if (now - idleSince >= lastSeenStepMs) {
      await prisma.adminSession.updateMany({
        where: { sha256: row.sha256 },
        data: { lastSeenAt: new Date(now) },
      });
    }
    const role = asRole(row.user.role);
    return {
      sha256: row.sha256,
      csrfToken: row.csrfToken,
      actor: {
        userId: row.user.id,
        name: row.user.name,
        role,
        enterpriseId: row.user.enterpriseId,
        reach: await reachOf(prisma, { ...row.user, role }),
      },
    };
  }

  async end(sha256: string): Promise<void> {
    await this.database.prisma.adminSession.deleteMany({ where: { sha256 } });
  }

  /** Deletes what has expired; called now and then, as nobody comes back for an old cookie. */
  async sweep(): Promise<void> {
    await this.database.prisma.adminSession.deleteMany({
      where: { expiresAt: { lte: new Date(this.clock.now()) } },
    });
  }
}

/** Ends all sessions of a user within a change: who loses a password, a role or the account is out at once. */
export async function endSessionsOf(tx: Prisma.TransactionClient, userId: string): Promise<void> {
  await tx.adminSession.deleteMany({ where: { userId } });
}

function sha256Of(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** A role that the code does not know gives the least rights. */
function asRole(text: string): Role {
  return roles.find((role) => role === text) ?? 'member';
}
