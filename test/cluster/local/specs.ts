import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { getAt } from '../../../constructs/lib/json.ts';
import { dumpYaml } from '../../../constructs/lib/yaml.ts';
import { readDefinitions } from '../../tools/definitions.ts';
import type { ToolOptions } from '../../tools/store.ts';

const template = fileURLToPath(new URL('../../../clusters/local/', import.meta.url));

/** What only this machine knows about the local cluster. */
export interface LocalFacts {
  /** `127.0.0.1:<port>` */
  readonly registry: string;
  /** `<address>:<port>` of the API server, without a name that needs DNS. */
  readonly apiServer: string;
  /** Digest of the packaged chart. */
  readonly chartDigest: string;
}

/** Stand-ins in clusters/local, and what takes their place. */
function fillIn(text: string, facts: LocalFacts): string {
  return text
    .replaceAll('127.0.0.1:5000', facts.registry)
    .replaceAll('192.0.2.1:6443', facts.apiServer)
    .replaceAll(`sha256:${'0'.repeat(64)}`, facts.chartDigest);
}

/** Name of the Secret in Flux's namespace with the password of the Git server. */
export const gitSecret = 'rendered-git';

/**
 * `cluster.yaml` of the local cluster for Flux as the courier: the rendered repository by its URL, looked at as often as
 * `interval` says, since nobody here tells Flux of a push.
 */
export function carriedByFlux(text: string, { url, interval }: { url: string; interval: string }): string {
  const flux = [`interval: ${interval}`, 'secretRef:', `  name: ${gitSecret}`];
  const settings = ['courier: flux', 'flux:', ...flux.map((line) => `  ${line}`)].join('\n    ');
  return text.replace('repository: ../rendered.git', `repository: ${url}`).replace('courier: none', settings);
}

/** Where the addresses of the local cluster are: a class, and MetalLB's controller as plain manifests. */
const addressesFile = 'addresses.yaml';
const metallbFolder = 'manifests/metallb';

/** MetalLB's definitions, which nobody commits here: they come out of the module that its controller is built from. */
async function metallbDefinitions(options: ToolOptions): Promise<Map<string, string>> {
  const definitions = await readDefinitions('metallb', options);
  return new Map(
    definitions.map((each) => [
      `${metallbFolder}/10-base/${String(getAt(each, '/metadata/name'))}.yaml`,
      dumpYaml(each),
    ]),
  );
}

export interface SpecOptions extends ToolOptions {
  /** False leaves out the addresses, and MetalLB with them. */
  readonly addresses: boolean;
}

/** Copies clusters/local into a specs repository's work tree, filled in. Answers the files written, relative to it. */
export async function copySpecs(
  target: string,
  facts: LocalFacts,
  { addresses, ...options }: SpecOptions,
): Promise<string[]> {
  const texts = addresses ? await metallbDefinitions(options) : new Map<string, string>();
  const entries = await readdir(template, { recursive: true, withFileTypes: true });
  for (const entry of entries.filter((candidate) => candidate.isFile())) {
    const source = join(entry.parentPath, entry.name);
    const path = relative(template, source);
    if (addresses || !(path === addressesFile || path.startsWith(`${metallbFolder}/`)))
      texts.set(path, fillIn(await readFile(source, 'utf8'), facts));
  }
  const folder = join('clusters', 'local');
  for (const [path, text] of texts) {
    const file = join(target, folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  return [...texts.keys()].map((path) => join(folder, path)).sort();
}
