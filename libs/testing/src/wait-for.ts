/**
 * Waits until a condition holds: tests never sleep for a time and hope.
 *
 * @param condition returns a value other than false, null or undefined once it holds
 * @throws Error with the description when it does not hold within the time
 */
export async function waitFor<T>(
  description: string,
  condition: () => T | Promise<T>,
  timeoutMs = 20_000,
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = Date.now() + timeoutMs;
  let lastError: unknown;
  for (;;) {
    try {
      const value = await condition();
      if (value !== false && value !== null && value !== undefined) {
        return value as NonNullable<Exclude<T, false>>;
      }
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (Date.now() > deadline) {
      throw new Error(`not within ${timeoutMs} ms: ${description}`, { cause: lastError });
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
