import { Worker, type WorkerOptions } from 'node:worker_threads';

const LIMITS: WorkerOptions = {
  // Merging 1 MB takes about 60 MB; a thread that needs far more is broken.
  resourceLimits: { maxOldGenerationSizeMb: 256 },
};

/**
 * Starts a counting thread: the compiled entry beside this file, or, when this file itself runs
 * from TypeScript (tests), the source through a loader that strips its types.
 */
export function startCountingThread(): Worker {
  if (!import.meta.url.endsWith('.ts')) {
    return new Worker(new URL('./counting-thread.js', import.meta.url), LIMITS);
  }
  const entry = new URL('./counting-thread.ts', import.meta.url).href;
  const start = `
    require('node:module').register(${JSON.stringify(asModule(TYPE_STRIPPING_HOOKS))}, ${JSON.stringify(import.meta.url)});
    import(${JSON.stringify(entry)});`;
  return new Worker(start, { ...LIMITS, eval: true });
}

/** Node 20 reads no TypeScript; swc is there wherever the tests are. */
const TYPE_STRIPPING_HOOKS = `
  import { readFile } from 'node:fs/promises';
  import { createRequire } from 'node:module';
  import { fileURLToPath } from 'node:url';
  const swcFrom = createRequire(${JSON.stringify(import.meta.url)});
  export async function resolve(specifier, context, next) {
    const fromSource = context.parentURL?.endsWith('.ts') && /^\\..*\\.js$/.test(specifier);
    return next(fromSource ? specifier.replace(/\\.js$/, '.ts') : specifier, context);
  }
  export async function load(url, context, next) {
    if (!url.endsWith('.ts')) return next(url, context);
    const { transform } = swcFrom('@swc/core');
    const source = await readFile(fileURLToPath(url), 'utf8');
    const { code } = await transform(source, {
      filename: fileURLToPath(url),
      jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
      module: { type: 'es6' },
    });
    return { format: 'module', source: code, shortCircuit: true };
  }
`;

function asModule(source: string): string {
  return `data:text/javascript,${encodeURIComponent(source)}`;
}
