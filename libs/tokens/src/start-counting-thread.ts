import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Worker, type WorkerOptions } from 'node:worker_threads';

const LIMITS: WorkerOptions = {
  // Merging 1 MB takes about 60 MB; a thread that needs far more is broken.
  resourceLimits: { maxOldGenerationSizeMb: 256 },
};

/**
 * Starts a counting thread: the compiled entry beside this file, or, when this file itself runs
 * from TypeScript (tests), the sources with their types stripped.
 */
export function startCountingThread(): Worker {
  if (!import.meta.url.endsWith('.ts')) {
    return new Worker(new URL('./counting-thread.js', import.meta.url), LIMITS);
  }
  sourceBootstrap ??= bootstrapFromSource();
  return new Worker(sourceBootstrap, { ...LIMITS, eval: true });
}

let sourceBootstrap: string | undefined;

/**
 * Node 20 runs no TypeScript. The sources are stripped here, on the main thread, and served by a
 * module hook: swc's native code inside a thread crashes the process when that thread is ended.
 */
function bootstrapFromSource(): string {
  const { transformSync } = createRequire(import.meta.url)(
    '@swc/core',
  ) as typeof import('@swc/core');
  const here = new URL('.', import.meta.url);
  const modules: Record<string, string> = {};
  for (const file of readdirSync(here)) {
    if (!file.endsWith('.ts') || file.endsWith('.spec.ts')) continue;
    const url = new URL(file, here);
    const { code } = transformSync(readFileSync(url, 'utf8'), {
      filename: file,
      jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
      module: { type: 'es6' },
    });
    modules[url.href.replace(/\.ts$/, '.js')] = code;
  }
  const hooks = `
    const modules = ${JSON.stringify(modules)};
    export async function resolve(specifier, context, next) {
      const url = URL.canParse(specifier, context.parentURL) ? new URL(specifier, context.parentURL).href : '';
      return url in modules ? { url, shortCircuit: true } : next(specifier, context);
    }
    export async function load(url, context, next) {
      return url in modules
        ? { format: 'module', source: modules[url], shortCircuit: true }
        : next(url, context);
    }`;
  const hooksUrl = `data:text/javascript,${encodeURIComponent(hooks)}`;
  const entry = new URL('./counting-thread.js', here).href;
  return `
    require('node:module').register(${JSON.stringify(hooksUrl)});
    import(${JSON.stringify(entry)});`;
}
