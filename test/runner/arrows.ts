import { posix } from 'node:path';
import type { SourceFile } from './sources.ts';

/** A folder with an architecture of its own, and the folders it may import from beside itself. */
interface Area {
  readonly folder: string;
  readonly may: readonly string[];
}

const product = ['constructs', 'renderer', 'gitops', 'executor', 'probes', 'images'];

/** The most specific folder decides. Every import arrow of the house is here; what is absent is forbidden. */
const areas: readonly Area[] = [
  { folder: 'constructs/lib', may: [] },
  { folder: 'constructs/api', may: ['constructs/lib'] },
  { folder: 'constructs/k8s', may: ['constructs/lib', 'constructs/api'] },
  { folder: 'constructs/couriers', may: ['constructs/lib', 'constructs/api'] },
  { folder: 'renderer', may: ['constructs'] },
  { folder: 'gitops', may: ['constructs/lib', 'constructs/api'] },
  { folder: 'executor', may: ['constructs/lib', 'constructs/api'] },
  { folder: 'probes', may: ['constructs/lib', 'constructs/api'] },
  { folder: 'images', may: ['constructs/lib', 'constructs/api'] },
  { folder: 'bin', may: product },
  {
    folder: 'bin/quickstart',
    may: ['bin', ...product, 'test/tools', 'test/apiserver', 'test/cluster', 'test/charts', 'test/standins'],
  },
  // Tests stand outside of the house: they call the command line as a process does, by its one function. Besides they may
  // ask for the pure decisions that only the command line makes.
  {
    folder: 'test',
    may: [
      ...product,
      'bin/program.ts',
      'bin/invocation.ts',
      'bin/networks.ts',
      'bin/peer-databases.ts',
      'bin/planning.ts',
      'bin/render/shares.ts',
      'bin/uninstall',
      'bin/addresses',
    ],
  },
];

/** Packages that only some areas may use: the leaf areas run in images that do not carry them. */
const packages: Readonly<Record<string, readonly string[]>> = {
  cdk8s: ['constructs/k8s', 'constructs/couriers', 'renderer', 'test'],
  'cdk8s-plus-28': ['constructs/k8s', 'constructs/couriers', 'renderer', 'test'],
  constructs: ['constructs/k8s', 'constructs/couriers', 'renderer', 'test'],
};

function within(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

function areaOf(path: string): Area | undefined {
  return areas.filter(({ folder }) => within(path, folder)).sort((a, b) => b.folder.length - a.folder.length)[0];
}

const staticImport = /^[ \t]*(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"\n]+)['"]/gm;
const bareImport = /^[ \t]*import\s*['"]([^'"\n]+)['"]/gm;
const dynamicImport = /\bimport\(\s*(?:(['"])([^'"\n]+)\1\s*\)|([^'")\s*]))/g;

/** The module specifiers of a file; `undefined` stands for an import whose target is computed. */
export function importsOf(text: string): (string | undefined)[] {
  const code = text.replace(/^[ \t]*(\/\/|\*|\/\*).*$/gm, '');
  const found = (pattern: RegExp): (string | undefined)[] => [...code.matchAll(pattern)].map(([, name]) => name);
  const dynamic = [...code.matchAll(dynamicImport)].map(([, , name]) => name);
  return [...found(staticImport), ...found(bareImport), ...dynamic];
}

/** Every import that goes against the arrows, as `file: what`. */
export function arrowProblems(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => path.endsWith('.ts'))
    .flatMap(({ path, text }) => {
      const from = areaOf(path);
      if (from === undefined) return [`${path}: lies in no known area; add it to the arrows or move it`];
      return importsOf(text).flatMap((name) => {
        const problem = importProblem(path, from, name);
        return problem === undefined ? [] : [`${path}: ${problem}`];
      });
    });
}

function importProblem(path: string, from: Area, name: string | undefined): string | undefined {
  if (name === undefined) return 'imports a computed path, which no check can follow';
  if (!name.startsWith('.')) return packageProblem(from, name);
  const target = posix.normalize(posix.join(posix.dirname(path), name));
  if (/\.ts$/.test(target) === false && !/\.(json|mjs)$/.test(target)) return `imports ${name} without its file ending`;
  const to = areaOf(target);
  if (to === undefined) return within(target, 'node_modules') ? `imports ${name} by its path` : undefined;
  const allowed = within(to.folder, from.folder) || from.may.some((folder) => within(target, folder));
  // A folder inside an area may have more rights than the area: those do not spread to who imports it.
  const widened = within(to.folder, from.folder) && to.folder !== from.folder;
  if (allowed && !widened) return undefined;
  return `imports ${target}: ${from.folder} may import ${from.may.join(', ') || 'nothing but itself'}`;
}

function packageProblem(from: Area, name: string): string | undefined {
  const owner = name.startsWith('@') ? name.split('/').slice(0, 2).join('/') : (name.split('/')[0] ?? name);
  const allowed = packages[owner];
  if (allowed === undefined || allowed.some((folder) => within(from.folder, folder))) return undefined;
  return `imports the package ${owner}, which only ${allowed.join(', ')} may use`;
}
