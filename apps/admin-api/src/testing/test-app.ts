import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { adminApi, type ApiRoute, type Clock, type OperationId } from '@weir/domain';
import { createLogger, createWeirApp } from '@weir/platform';
import { adminAppOptions } from '../admin-api.app.js';
import { AdminApiModule } from '../admin-api.module.js';
import { sessionCookie } from '../auth/session-cookie.js';
import { adminConfigSchema, type AdminConfig } from '../config.js';

/** The admin API as it runs in production, without a port. For tests. */
export type TestApp = {
  readonly app: NestFastifyApplication;
  readonly config: AdminConfig;
  /** Signs in through the API; the client carries cookie and CSRF token. */
  signIn(email: string, password: string): Promise<TestClient>;
  /** A client without a session. */
  readonly anonymous: TestClient;
  close(): Promise<void>;
};

export type TestCall = {
  readonly id?: string;
  readonly query?: Record<string, string>;
  readonly body?: unknown;
  /** Goes into If-Match. */
  readonly version?: number | string;
  /** Added to, or with undefined taken away from, what the client sends by itself. */
  readonly headers?: Record<string, string | undefined>;
};

export type TestAnswer = {
  readonly status: number;
  readonly headers: Record<string, string | string[] | number | undefined>;
  readonly text: string;
  /** The parsed JSON body. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
  readonly body: any;
};

export type TestClient = {
  call(operationId: OperationId, call?: TestCall): Promise<TestAnswer>;
  readonly cookie: string;
  readonly csrfToken: string;
};

/** Base64 of 32 bytes; seals nothing but test data. */
export const testSecretKey = Buffer.alloc(32, 7).toString('base64');

export async function startTestApp(options: {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly redisPrefix: string;
  readonly clock?: Clock;
  readonly settings?: Record<string, string>;
}): Promise<TestApp> {
  const config = adminConfigSchema.parse({
    DATABASE_URL: options.databaseUrl,
    REDIS_URL: options.redisUrl,
    REDIS_PREFIX: options.redisPrefix,
    WEIR_SECRET_KEY: testSecretKey,
    LOG_LEVEL: 'silent',
    SIGN_IN_RATE_PER_MINUTE: '10000',
    ...options.settings,
  });
  const logger = createLogger({ name: 'admin-api', level: config.LOG_LEVEL });
  const app = await createWeirApp(
    AdminApiModule.forRoot(config, options.clock),
    adminAppOptions(config, logger),
  );
  return {
    app,
    config,
    anonymous: clientOf(app, '', ''),
    signIn: async (email, password) => {
      const answer = await clientOf(app, '', '').call('signIn', { body: { email, password } });
      if (answer.status !== 200) throw new Error(`sign-in of ${email}: ${answer.text}`);
      return clientOf(app, cookieOf(answer), answer.body.csrfToken);
    },
    close: () => app.close(),
  };
}

/** The session cookie that an answer sets, as a request sends it. */
export function cookieOf(answer: TestAnswer): string {
  const header = answer.headers['set-cookie'];
  const first = Array.isArray(header) ? header[0] : String(header ?? '');
  const value = new RegExp(`^${sessionCookie}=([^;]*)`).exec(first ?? '')?.[1] ?? '';
  return `${sessionCookie}=${value}`;
}

export function clientOf(
  app: NestFastifyApplication,
  cookie: string,
  csrfToken: string,
): TestClient {
  return {
    cookie,
    csrfToken,
    call: async (operationId, call = {}) => {
      const route: ApiRoute = adminApi[operationId];
      const url = route.path.replace('{id}', call.id ?? '');
      const headers: Record<string, string | undefined> = {
        ...(cookie === '' ? {} : { cookie }),
        ...(csrfToken === '' ? {} : { 'x-csrf-token': csrfToken }),
        ...(call.version === undefined ? {} : { 'if-match': `"${call.version}"` }),
        ...(call.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...call.headers,
      };
      const response = await app.inject({
        method: route.method.toUpperCase() as 'GET',
        url,
        query: call.query ?? {},
        headers: Object.fromEntries(
          Object.entries(headers).filter(([, value]) => value !== undefined),
        ) as Record<string, string>,
        ...(call.body === undefined
          ? {}
          : { payload: typeof call.body === 'string' ? call.body : JSON.stringify(call.body) }),
      });
      const isJson = String(response.headers['content-type'] ?? '').startsWith('application/json');
      return {
        status: response.statusCode,
        headers: response.headers,
        text: response.payload,
        body: isJson ? JSON.parse(response.payload) : undefined,
      };
    },
  };
}
