// The browser for the end-to-end tests.

import { findOnPath, tryCommand } from '../lib/commands.mjs';
import { canInstallPackages, installPackages } from '../lib/debian.mjs';

/**
 * @param {{ dir: string, log: (line: string) => void }} options `dir` takes the log of an installation
 * @returns {Promise<string | null>} the browser's path; null leaves it to Playwright's own
 */
export async function findChromium({ dir, log }) {
  if (process.env.CHROMIUM_PATH) return process.env.CHROMIUM_PATH;
  const names = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];
  let path = findOnPath(...names);
  if (!canInstallPackages()) return path;

  // Without a Chinese font the Chinese pages are drawn as rows of empty boxes.
  const fonts = await tryCommand('fc-list', [':lang=zh']);
  const missing = [
    ...(path === null ? ['chromium'] : []),
    ...(fonts.output.trim() === '' ? ['fonts-noto-cjk'] : []),
  ];
  if (missing.length > 0) {
    await installPackages(missing, { dir, log });
    path = findOnPath(...names);
  }
  return path;
}
