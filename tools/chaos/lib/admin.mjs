const REQUEST_MS = 15_000;

/**
 * Signs in at the admin API and changes settings of the enterprise.
 *
 * @param {string} baseUrl
 * @param {{ email: string, password: string }} login
 * @param {object} settings those to change
 */
export async function changeSettings(baseUrl, { email, password }, settings) {
  const signIn = await fetch(`${baseUrl}/api/v1/auth/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password }),
    signal: AbortSignal.timeout(REQUEST_MS),
  });
  const { csrfToken } = await bodyOf(signIn);
  const cookie = signIn.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ');
  const url = `${baseUrl}/api/v1/enterprise`;
  const headers = { cookie, 'x-csrf-token': csrfToken };
  const signal = AbortSignal.timeout(REQUEST_MS);
  const { version } = await bodyOf(await fetch(url, { headers, signal }));
  await bodyOf(
    await fetch(url, {
      method: 'PATCH',
      headers: { ...headers, 'content-type': 'application/json', 'if-match': `"${version}"` },
      body: JSON.stringify({ settings }),
      signal,
    }),
  );
}

/** The body of a good answer; any other is an error with what it says. */
export async function bodyOf(response) {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${text}`);
  return text === '' ? null : JSON.parse(text);
}
