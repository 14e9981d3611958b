import { errorCodes, type ErrorCode } from '@weir/domain';
import { z } from 'zod';

/** `network`: no answer at all. `unknown`: an answer that is not in the API's error shape. */
export type ApiErrorCode = ErrorCode | 'network' | 'unknown';

/** A failed call of the admin API, whatever went wrong. */
export class ApiError extends Error {
  constructor(
    readonly code: ApiErrorCode,
    readonly httpStatus: number,
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
    readonly requestId: string | null = null,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(errorCodes, code);
}

/** Reads the API's error shape; anything else (a proxy's page, an empty body) becomes `unknown` with its status. */
export async function apiErrorFrom(response: Response): Promise<ApiError> {
  const text = await response.text();
  let error: Record<string, unknown> = {};
  try {
    const body = JSON.parse(text) as { error?: Record<string, unknown> } | null;
    error = body?.error ?? {};
  } catch {
    // Not JSON: the status is all there is to tell.
  }
  return new ApiError(
    isErrorCode(error['code']) ? error['code'] : 'unknown',
    response.status,
    typeof error['message'] === 'string' ? error['message'] : response.statusText,
    (error['details'] as Record<string, unknown> | undefined) ?? {},
    typeof error['requestId'] === 'string' ? error['requestId'] : null,
  );
}

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError('unknown', 0, error instanceof Error ? error.message : String(error));
}

const fieldFaultsSchema = z.array(
  z.object({ path: z.string(), message: z.string(), remedy: z.string().optional() }),
);

/** Faults by the field's path of a `validation_failed` answer; empty for other errors. */
export function fieldFaults(error: ApiError): ReadonlyMap<string, string> {
  const parsed = fieldFaultsSchema.safeParse(error.details['fields']);
  if (error.code !== 'validation_failed' || !parsed.success) return new Map();
  return new Map(
    parsed.data.map(({ path, message, remedy }) => [
      path.replace(/^body\./, ''),
      remedy ? `${message}. ${remedy}` : message,
    ]),
  );
}
