// The admin API as a script uses it.

const REQUEST_MS = 15_000;

/** @typedef {(method: string, path: string, body?: object, version?: number) => Promise<any>} Ask */

/**
 * Signs in at the admin API.
 *
 * @param {string} baseUrl
 * @param {{ email: string, password: string }} login
 * @returns {Promise<Ask>} makes one request, path below `/api/v1`, with the version of the row that it changes; resolves
 *   with the body of a good answer
 */
export async function signIn(baseUrl, { email, password }) {
  const send = (
    /** @type {string} */ method,
    /** @type {string} */ path,
    /** @type {object | undefined} */ body,
    /** @type {Record<string, string>} */ headers,
  ) =>
    fetch(`${baseUrl}/api/v1${path}`, {
      method,
      headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(REQUEST_MS),
    });
  const answer = await send('POST', '/auth/sign-in', { email, password }, {});
  const { csrfToken } = await bodyOf(answer);
  const cookie = answer.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ');
  return async (method, path, body, version) =>
    bodyOf(
      await send(method, path, body, {
        cookie,
        'x-csrf-token': csrfToken,
        ...(version !== undefined && { 'if-match': `"${version}"` }),
      }),
    );
}

/**
 * The body of a good answer; any other is an error with what it says.
 * @param {Response} response
 */
export async function bodyOf(response) {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${text}`);
  return text === '' ? null : JSON.parse(text);
}
