import { describe, expect, it } from 'vitest';
import { apiErrorFrom, asApiError, fieldFaults } from './api-error.js';

const answer = (status: number, body: unknown) =>
  apiErrorFrom(new Response(typeof body === 'string' ? body : JSON.stringify(body), { status }));

describe('a failed answer', () => {
  it('is read in the API’s shape', async () => {
    const error = await answer(422, {
      error: {
        code: 'validation_failed',
        message: 'name: must not be empty',
        details: {
          fields: [{ path: 'name', message: 'must not be empty', remedy: 'Fill it in.' }],
        },
        requestId: 'r1',
      },
    });
    expect(error).toMatchObject({ code: 'validation_failed', httpStatus: 422, requestId: 'r1' });
    expect([...fieldFaults(error)]).toEqual([['name', 'must not be empty. Fill it in.']]);
  });

  it('of another shape is unknown, and keeps its status', async () => {
    expect(await answer(502, '<html>Bad gateway</html>')).toMatchObject({
      code: 'unknown',
      httpStatus: 502,
    });
    expect(await answer(500, 'null')).toMatchObject({ code: 'unknown' });
    expect(await answer(500, { error: { code: 'toString' } })).toMatchObject({ code: 'unknown' });
  });

  it('names no fields when it is not about fields', async () => {
    expect(fieldFaults(await answer(409, { error: { code: 'conflict' } })).size).toBe(0);
    expect(fieldFaults(asApiError('boom')).size).toBe(0);
  });
});
