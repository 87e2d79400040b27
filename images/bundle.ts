import type { BuildOptions } from 'esbuild';

export interface BundleInput {
  /** The TypeScript file that is the program. */
  readonly entry: string;
  /** The file to write. */
  readonly output: string;
  /** First line, such as `#!/bin/node`; none when absent. */
  readonly interpreter?: string;
}

/** CommonJS packages inside the ES module find the three names that only CommonJS has. */
const shims = [
  "import { createRequire as keelsonCreateRequire } from 'node:module';",
  "import { fileURLToPath as keelsonFileURLToPath } from 'node:url';",
  'const require = keelsonCreateRequire(import.meta.url);',
  'const __filename = keelsonFileURLToPath(import.meta.url);',
  "const __dirname = __filename.slice(0, __filename.lastIndexOf('/'));",
].join('\n');

/** What both forms of a bundle have in common: sources and packages decide over the bytes, nothing else. */
const common: BuildOptions = {
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  mainFields: ['module', 'main'],
  legalComments: 'none',
  // Only a source tree bundles; the published program brings no bundler.
  external: ['esbuild'],
  logLevel: 'silent',
};

/** Loaded when something is bundled: a static import would stand in the bundled program itself, where no bundler is. */
async function build(options: BuildOptions): Promise<void> {
  const bundler = await import('esbuild');
  await bundler.build(options);
}

/**
 * Bundles a program and everything it imports into one ES module for the pinned Node. The same sources and packages
 * give the same bytes. @throws esbuild's error with file and line for what can not be resolved.
 */
export async function bundleProgram(input: BundleInput): Promise<void> {
  await build({
    ...common,
    entryPoints: [input.entry],
    outfile: input.output,
    banner: { js: `${input.interpreter === undefined ? '' : `${input.interpreter}\n`}${shims}` },
  });
}

/**
 * Bundles a program as one CommonJS script without spaces: an ES module makes Node fill in every export of the modules that
 * it imports, which costs 8 MiB.
 */
export async function bundleScript(entry: string, output: string): Promise<void> {
  await build({ ...common, format: 'cjs', minifyWhitespace: true, entryPoints: [entry], outfile: output });
}

/**
 * Bundles a program into `folder` as a small ES module and parts that it loads when a command needs them: starting it
 * costs a quarter of what reading one large file costs.
 */
export async function bundleInParts(entry: string, folder: string): Promise<void> {
  await build({
    ...common,
    entryPoints: [entry],
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    splitting: true,
    banner: { js: shims },
  });
}
