import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { expect, type RunningStack, test } from './stack.js';

type Enterprise = {
  version: number;
  settings: {
    queue: { maxWaitMs: number; maxWaiting: number; streamNotices: boolean };
    ipRules: { allow: string[]; deny: string[] };
  };
};
type Limit = { id: string; metric: string; amount: string | null; version: number };

/** One whose budgets no other file uses up. */
const department = 'Customer Support';

async function openSettings(page: Page, stack: RunningStack): Promise<void> {
  await page.goto(`${stack.urls.adminApi}/settings`);
  await page.getByLabel('Email').fill(stack.demo.console.email);
  await page.getByLabel('Password').fill(stack.demo.console.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('heading', { name: 'Settings' })).toBeVisible();
}

const queueOf = (page: Page) => page.getByRole('form', { name: 'Waiting instead of refusing' });
const addressesOf = (page: Page) => page.getByRole('form', { name: 'Addresses' });
const settingsOf = async (stack: RunningStack) =>
  (await stack.admin.get<Enterprise>('/api/v1/enterprise')).settings;

function call(stack: RunningStack, body: object = {}): Promise<Response> {
  return fetch(`${stack.urls.gateway}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${stack.keyOf(department)}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({
      model: 'demo-small',
      messages: [{ role: 'user', content: 'Tell me of rivers.' }],
      max_tokens: 40,
      ...body,
    }),
  });
}

test.describe.configure({ mode: 'serial' });

test.describe('the settings of the enterprise', () => {
  // The stack is shared with the other files.
  test.afterAll(async ({ stack }) => {
    const { version } = await stack.admin.get<Enterprise>('/api/v1/enterprise');
    const settings = { queue: { maxWaitMs: 0 }, ipRules: { allow: [], deny: [] } };
    await stack.admin.request('PATCH', '/api/v1/enterprise', { settings }, version);
  });

  test('let calls wait for their turn, and a waiting stream is told where it stands', async ({
    page,
    stack,
  }) => {
    await openSettings(page, stack);
    const form = queueOf(page);
    await form.getByLabel('Let calls wait for their turn').check();
    await form.getByLabel('Longest wait in seconds').fill('90');
    await form.getByLabel('Calls that may wait').fill('0');
    await form.getByRole('button', { name: 'Save' }).click();
    await expect(form.getByText('More than 0 and at most 60 seconds.')).toBeVisible();
    await expect(form.getByText('A whole number from 1 to 10,000.')).toBeVisible();
    expect((await settingsOf(stack)).queue.maxWaitMs).toBe(0);
    const { violations } = await new AxeBuilder({ page }).analyze();
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);

    await form.getByLabel('Longest wait in seconds').fill('45');
    await form.getByLabel('Calls that may wait').fill('20');
    await form.getByRole('button', { name: 'Save' }).click();
    await expect(form.getByRole('button', { name: 'Save' })).toBeDisabled();
    expect((await settingsOf(stack)).queue).toEqual({
      maxWaitMs: 45_000,
      maxWaiting: 20,
      streamNotices: true,
    });

    const node = stack.demo.departments[department] ?? '';
    const { limits } = await stack.admin.get<{ limits: Limit[] }>(`/api/v1/nodes/${node}`);
    const slots = limits.find(({ metric }) => metric === 'concurrency');
    if (!slots) throw new Error('the demo data has no concurrency limit for it');
    const path = `/api/v1/limits/${slots.id}`;
    const lowered = await stack.admin.request<Limit>('PATCH', path, { amount: '1' }, slots.version);
    try {
      // Some five seconds long, so that the next one waits for longer than the two until the first comment.
      const holder = await call(stack, {
        stream: true,
        max_tokens: 200,
        user: 'demo:output_tokens=100;tokens_per_second=20',
      });
      const held = holder.text();
      const waiting = await call(stack, { stream: true });
      expect(waiting.status).toBe(200);
      const text = await waiting.text();
      expect(text).toMatch(
        /^: waiting, position 1 of 1, (?:about \d+ s|for at most \d+ s more)\n\n/,
      );
      expect(text).toContain('data: [DONE]');
      expect(await held).toContain('data: [DONE]');
    } finally {
      await stack.admin.request('PATCH', path, { amount: slots.amount }, lowered.version);
    }
  });

  test('say from which addresses keys may be used', async ({ page, stack }) => {
    await openSettings(page, stack);
    const form = addressesOf(page);
    const save = form.getByRole('button', { name: 'Save' });
    await form.getByLabel('May not call').fill('127.0.0.1\n10.0.0.0/99');
    await save.click();
    await expect(form.getByText('“10.0.0.0/99” is neither an address nor a range.')).toBeVisible();
    await form.getByLabel('May not call').fill('127.0.0.1\n::1');
    await save.click();
    await expect(save).toBeDisabled();
    expect((await settingsOf(stack)).ipRules).toEqual({ allow: [], deny: ['127.0.0.1', '::1'] });
    const status = async () => (await call(stack)).status;
    await expect.poll(status, { timeout: 2_000, intervals: [50] }).toBe(403);

    await form.getByLabel('May not call').fill('');
    await save.click();
    await expect(save).toBeDisabled();
    await expect.poll(status, { timeout: 2_000, intervals: [50] }).toBe(200);
  });

  test('lose nothing when two people change them at once', async ({ page, stack }) => {
    await openSettings(page, stack);
    const other = await page.context().newPage();
    await other.goto(`${stack.urls.adminApi}/settings`);
    const [mine, theirs] = [queueOf(page), queueOf(other)];
    await mine.getByLabel('Longest wait in seconds').fill('50');

    // Another section is no conflict.
    await addressesOf(other).getByLabel('May call', { exact: true }).fill('0.0.0.0/0 ::/0');
    await addressesOf(other).getByRole('button', { name: 'Save' }).click();
    await expect(addressesOf(other).getByRole('button', { name: 'Save' })).toBeDisabled();
    await mine.getByRole('button', { name: 'Save' }).click();
    await expect(mine.getByRole('button', { name: 'Save' })).toBeDisabled();
    expect(await settingsOf(stack)).toMatchObject({
      queue: { maxWaitMs: 50_000 },
      ipRules: { allow: ['0.0.0.0/0', '::/0'] },
    });

    await other.reload();
    await mine.getByLabel('Longest wait in seconds').fill('55');
    await theirs.getByLabel('Calls that may wait').fill('30');
    await theirs.getByRole('button', { name: 'Save' }).click();
    await expect(theirs.getByRole('button', { name: 'Save' })).toBeDisabled();
    await mine.getByRole('button', { name: 'Save' }).click();
    await expect(mine.getByRole('alert')).toContainText('Someone else has changed');
    expect((await settingsOf(stack)).queue).toMatchObject({ maxWaitMs: 50_000, maxWaiting: 30 });
    await mine.getByRole('button', { name: 'Go on editing' }).click();
    await expect(mine.getByLabel('Calls that may wait')).toHaveValue('30');
    await mine.getByRole('button', { name: 'Save' }).click();
    await expect(mine.getByRole('button', { name: 'Save' })).toBeDisabled();
    expect((await settingsOf(stack)).queue).toMatchObject({ maxWaitMs: 55_000, maxWaiting: 30 });
    await other.close();
  });

  test('cannot be changed by those who may not, who are told why', async ({ page, stack }) => {
    const { finance } = stack.demo.console;
    await page.goto(`${stack.urls.adminApi}/settings`);
    await page.getByLabel('Email').fill(finance.email);
    await page.getByLabel('Password').fill(finance.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expect(queueOf(page).getByLabel('Longest wait in seconds')).toBeDisabled();
    const save = queueOf(page).getByRole('button', { name: 'Save' });
    await expect(save).toHaveAttribute('aria-disabled', 'true');
    await expect(save).toHaveAccessibleDescription(/Finance may not change settings/);
  });
});
