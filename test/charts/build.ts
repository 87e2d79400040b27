/** Packages the network chart of the tests: the newer and the older shape, and variants that a renderer has to refuse. */
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { type Digest, sha256Digest } from '../../constructs/lib/digest.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { gzipFixed, packTar, type TarFile } from '../../constructs/lib/tar.ts';
import { dumpYaml, parseYaml } from '../../constructs/lib/yaml.ts';
import { type ChartVariant, variantEdits } from './variants.ts';

const here = new URL('.', import.meta.url).pathname;

/** The files of a chart by their path inside it. */
export type ChartFiles = Map<string, string>;

export interface PackagedChart {
  /** The archive, the same bytes on every machine. */
  readonly bytes: Uint8Array;
  /** Of the archive: what `spec.chart.digest` names. */
  readonly digest: Digest;
  /** As its Chart.yaml says. */
  readonly name: string;
  readonly version: string;
}

/** Value keys that only the newer shape has. */
const newerKeys: readonly (readonly string[])[] = [
  ['installMode'],
  ['OVN_CENTRAL_MODE'],
  ['externalOvnCentral'],
  ['networking', 'TLS_MIN_VERSION'],
  ['networking', 'TLS_MAX_VERSION'],
  ['networking', 'TLS_CIPHER_SUITES'],
  ['networking', 'KUBE_OVN_TLS_ROTATION_INTERVAL'],
  ['ovn-central', 'nodeSelector'],
  ['ovn-central', 'tolerations'],
  ['ovn-central', 'storage'],
  ['ovn-central', 'service'],
  ['ovn-central', 'hcp'],
  ['kube-ovn-controller', 'leaderElection'],
];
const newerTemplates = ['central-hcp-rbac', 'central-pvc', 'central-svc'];
const versions = { new: '1.16.13', old: '1.16.2' } as const;

/** The files of one shape, before any variant's edits. */
export async function chartFiles(shape: 'new' | 'old'): Promise<ChartFiles> {
  const files = await filesBelow(join(here, 'kube-ovn'));
  if (shape === 'new') return files;
  for (const [path, text] of await filesBelow(join(here, 'kube-ovn-old'))) files.set(path, text);
  for (const name of newerTemplates) files.delete(`templates/${name}.yaml`);
  files.set('Chart.yaml', (files.get('Chart.yaml') ?? '').replaceAll(versions.new, versions.old));
  const values = yamlObject(files.get('values.yaml') ?? '', 'values.yaml');
  for (const path of newerKeys) dropKey(values, path);
  files.set('values.yaml', dumpYaml(values).replaceAll(versions.new, versions.old));
  return files;
}

/** Packs one variant as `helm package` lays it out: everything below a folder of the chart's name. */
export async function packageChart(variant: ChartVariant = 'new'): Promise<PackagedChart> {
  const edits = variantEdits[variant];
  const files = await chartFiles(edits.shape ?? 'new');
  edits.files?.(files);
  const chart = yamlObject(files.get('Chart.yaml') ?? '', 'Chart.yaml');
  const name = String(chart.name);
  const entries: TarFile[] = [...files].map(([path, text]) => ({ path: `${name}/${path}`, bytes: Buffer.from(text) }));
  const tar = await packTar([...entries, ...(edits.entries?.(name) ?? [])]);
  const bytes = edits.archive?.(gzipFixed(tar)) ?? gzipFixed(tar);
  return { bytes, digest: sha256Digest(bytes), name, version: String(chart.version) };
}

async function filesBelow(folder: string): Promise<ChartFiles> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const read = paths.sort().map(async (path) => [relative(folder, path), await readFile(path, 'utf8')] as const);
  return new Map(await Promise.all(read));
}

function yamlObject(text: string, file: string): JsonObject {
  const { documents, problems } = parseYaml(text, file);
  const value = documents[0]?.value;
  if (problems.length > 0 || !isObject(value)) throw new Error(`${file} of the test chart is no YAML mapping`);
  return value;
}

function dropKey(values: JsonObject, path: readonly string[]): void {
  let holder = values;
  for (const key of path.slice(0, -1)) {
    const next = holder[key];
    if (!isObject(next)) throw new Error(`values.yaml of the test chart has no ${path.join('.')}`);
    holder = next;
  }
  const last = path.at(-1) ?? '';
  if (!(last in holder)) throw new Error(`values.yaml of the test chart has no ${path.join('.')}`);
  delete holder[last];
}
