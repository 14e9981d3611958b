import { parseArgs } from 'node:util';
import { loadConfig, runMain } from '@weir/platform';
import { z } from 'zod';
import { makePassword } from './auth/passwords.js';
import { controlConfigShape } from './config.js';
import { withControlContext } from './control/control-context.js';
import { createEnterpriseWithOwner } from './control/enterprise-setup.js';

/*
 * Makes an enterprise and its first owner, who makes all else in the console:
 *
 *   node apps/admin-api/dist/create-enterprise.js --name "Example Ltd" --zone Europe/Berlin --currency EUR \
 *     --email owner@example.com
 *
 * Prints one JSON object with the owner's generated password, which is stored nowhere.
 */

await runMain(async () => {
  const { values } = parseArgs({
    options: {
      name: { type: 'string' },
      zone: { type: 'string' },
      currency: { type: 'string' },
      email: { type: 'string' },
      owner: { type: 'string', default: 'Owner' },
      department: { type: 'string', default: 'Administration' },
    },
  });
  const { name, zone, currency, email, owner, department } = values;
  if (!name || !zone || !currency || !email) {
    throw new Error('Give --name, --zone, --currency and --email.');
  }
  const config = loadConfig(z.object(controlConfigShape));
  const password = makePassword();
  const made = await withControlContext('create-enterprise', config, (context) =>
    createEnterpriseWithOwner(context, {
      enterprise: { name, timeZone: zone, currency },
      owner: { name: owner, email, password, department },
    }),
  );
  process.stdout.write(`${JSON.stringify({ ...made, email, password })}\n`);
});
