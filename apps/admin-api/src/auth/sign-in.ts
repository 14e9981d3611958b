import { Inject, Injectable } from '@nestjs/common';
import { permissionsOf, roles, WeirError, type Clock } from '@weir/domain';
import type { Database } from '@weir/persistence';
import { InjectLogger, type Logger } from '@weir/platform';
import { LRUCache } from 'lru-cache';
import type { AdminConfig } from '../config.js';
import type { AnswerOf } from '../http/operation.js';
import { ADMIN_CONFIG, CLOCK, DATABASE } from '../tokens.js';
import { passwordFits } from './passwords.js';
import { Sessions } from './sessions.js';

type Attempt = { failures: number; lockedUntilMs: number };

/** Unknown e-mails whose failures are remembered at once; beyond that the oldest are forgotten. */
const strangersMax = 10_000;

@Injectable()
export class SignIn {
  /** Unknown e-mails lock like known ones, or the lock would tell which exist. */
  private readonly strangers = new LRUCache<string, Attempt>({ max: strangersMax });

  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(ADMIN_CONFIG) private readonly config: AdminConfig,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly sessions: Sessions,
    @InjectLogger() private readonly logger: Logger,
  ) {}

  /**
   * Checks e-mail and password and starts a session.
   *
   * @throws WeirError `unauthenticated`, the same for an unknown e-mail and a wrong password; `locked_out` after too
   * many failures in a row, with `retry_after_seconds`.
   */
  async signIn(email: string, password: string): Promise<{ token: string; me: AnswerOf<'me'> }> {
    const user = await this.findLogin(email);
    if (user === null) this.countStranger(email);
    else await this.countAttempt(user.id);
    const fits = await passwordFits(user?.passwordHash ?? null, password);
    if (user === null || !fits) {
      this.logger.info({ user_id: user?.id ?? null }, 'sign-in failed');
      throw new WeirError('unauthenticated', 'E-mail or password is wrong.');
    }
    await this.database.prisma.user.updateMany({
      where: { id: user.id },
      data: { failedSignIns: 0, lockedUntil: null },
    });
    const { token, csrfToken } = await this.sessions.start(user.id);
    this.logger.info({ user_id: user.id }, 'signed in');
    return { token, me: await this.me(user.id, csrfToken) };
  }

  async me(userId: string, csrfToken: string): Promise<AnswerOf<'me'>> {
    const user = await this.database.prisma.user.findUniqueOrThrow({
      where: { id: userId },
      include: { enterprise: true },
      omit: { passwordHash: true },
    });
    const role = roles.find((candidate) => candidate === user.role) ?? 'member';
    return {
      user: {
        id: user.id,
        name: user.name,
        email: user.email ?? '',
        role,
        departmentId: user.departmentId,
      },
      enterprise: {
        id: user.enterprise.id,
        name: user.enterprise.name,
        timeZone: user.enterprise.timeZone,
        currency: user.enterprise.currency,
      },
      permissions: [...permissionsOf[role]],
      csrfToken,
    };
  }

  private async findLogin(email: string) {
    return this.database.prisma.user.findFirst({
      where: {
        email: { equals: email, mode: 'insensitive' },
        kind: 'person',
        status: 'active',
        passwordHash: { not: null },
      },
      select: { id: true, passwordHash: true },
    });
  }

  /**
   * Counted before the password is checked, and the last allowed attempt locks before its check: a hundred guesses sent
   * at once must not all be checked before the first failure is seen. A right password clears both.
   */
  private async countAttempt(userId: string): Promise<void> {
    const now = new Date(this.clock.now());
    const lockedUntil = new Date(now.getTime() + this.config.LOCKOUT_SECONDS * 1_000);
    const counted = await this.database.prisma.$executeRaw`
      UPDATE app_user SET
        failed_sign_ins = CASE WHEN locked_until IS NULL THEN failed_sign_ins + 1 ELSE 1 END,
        locked_until = CASE
          WHEN (CASE WHEN locked_until IS NULL THEN failed_sign_ins + 1 ELSE 1 END)
            >= ${this.config.LOCKOUT_FAILURES} THEN ${lockedUntil}::timestamptz
        END
      WHERE id = ${userId}::uuid AND (locked_until IS NULL OR locked_until <= ${now}::timestamptz)`;
    if (counted === 1) return;
    const row = await this.database.prisma.user.findUnique({
      where: { id: userId },
      select: { lockedUntil: true },
    });
    throw this.lockedOut(row?.lockedUntil?.getTime() ?? now.getTime());
  }

  private countStranger(email: string): void {
    const key = email.toLowerCase();
    const now = this.clock.now();
    const attempt = this.strangers.get(key) ?? { failures: 0, lockedUntilMs: 0 };
    if (attempt.lockedUntilMs > now) throw this.lockedOut(attempt.lockedUntilMs);
    attempt.failures += 1;
    if (attempt.failures >= this.config.LOCKOUT_FAILURES) {
      attempt.failures = 0;
      attempt.lockedUntilMs = now + this.config.LOCKOUT_SECONDS * 1_000;
    }
    this.strangers.set(key, attempt);
  }

  private lockedOut(untilMs: number): WeirError {
    const seconds = Math.max(1, Math.ceil((untilMs - this.clock.now()) / 1_000));
    return new WeirError(
      'locked_out',
      `Too many wrong passwords. Try again in ${seconds} seconds.`,
      { retry_after_seconds: seconds, until: new Date(untilMs).toISOString() },
    );
  }
}
