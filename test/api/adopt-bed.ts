/** A network that is there before Keelson: installed by Helm or by kubectl, out of the chart that is then adopted. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { annotations, foreignAnnotations, labels } from '../../constructs/api/constants.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { dumpYaml, parseYaml } from '../../constructs/lib/yaml.ts';
import type { Rendered } from '../../renderer/render.ts';
import { packageChart } from '../charts/build.ts';
import { run } from '../tools/process.ts';
import { ensureTool } from '../tools/tools.ts';
import { type Loose, type NetworkBed, paths } from './network-bed.ts';
import { installationName, networkRelease } from './network-folder.ts';

/** The values with which somebody installed it: those that the spec of the tests renders with. */
const values: JsonObject = {
  namespace: 'kube-system',
  installMode: 'full',
  MASTER_NODES: '10.0.0.1,10.0.0.2,10.0.0.3',
  MASTER_NODES_LABEL: 'node-role.kubernetes.io/control-plane=',
  OVN_CENTRAL_MODE: 'cluster',
  'ovs-ovn': { updateStrategy: { type: 'RollingUpdate' } },
};

async function helm(bed: NetworkBed, verb: 'install' | 'template'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-adopt-'));
  try {
    const [archive, file] = [join(folder, 'chart.tgz'), join(folder, 'values.yaml')];
    await writeFile(archive, (await packageChart('new')).bytes);
    await writeFile(file, dumpYaml(values));
    const program = await ensureTool('helm', { onProgress: (line) => console.error(line) });
    const args = [verb, installationName, archive, '--namespace', 'kube-system', '--values', file, '--no-hooks'];
    const done = await run(program, [...args, '--kubeconfig', bed.server.kubeconfig], {
      env: { HOME: folder, PATH: '/usr/bin:/bin' },
      limitMs: 120_000,
    });
    if (done.code !== 0) throw new Error(`helm ${verb}: ${done.stderr}`);
    return done.stdout;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Installs the chart as a person with Helm does. */
export const helmInstall = (bed: NetworkBed): Promise<string> => helm(bed, 'install');

/** The chart's manifests, each with a label by which it can be selected. */
export async function manifests(bed: NetworkBed, label: Readonly<Record<string, string>>): Promise<string> {
  const { documents } = parseYaml(await helm(bed, 'template'), 'manifests.yaml');
  const objects = documents
    .map(({ value }) => value as Loose)
    .filter((object) => object?.metadata?.annotations?.[foreignAnnotations.helmHook] === undefined);
  for (const { metadata } of objects) metadata.labels = { ...metadata.labels, ...label };
  return objects.map((object) => dumpYaml(object)).join('---\n');
}

const irregular: Readonly<Record<string, string>> = { EndpointSlice: 'endpointslices' };

/** Path of an object by its payload id. */
export function pathOfId(id: string): string {
  const [group = '', kind = '', namespace = '', name = ''] = id.split('/');
  const lower = kind.toLowerCase();
  const plural =
    irregular[kind] ??
    (lower.endsWith('s') ? `${lower}es` : lower.endsWith('y') ? `${lower.slice(0, -1)}ies` : `${lower}s`);
  return `${group === '' ? '/api/v1' : `/apis/${group}/v1`}${namespace === '' ? '' : `/namespaces/${namespace}`}/${plural}/${name}`;
}

/** Every object of a payload as it is in the cluster. */
export async function liveOf(bed: NetworkBed, rendered: Rendered): Promise<Map<string, Loose>> {
  const found = new Map<string, Loose>();
  for (const id of networkRelease(rendered).objects.keys()) {
    const live = await bed.get(pathOfId(id));
    assert.ok(live, `${id} is there`);
    found.set(id, live);
  }
  return found;
}

/** What an adoption may change of metadata, and what it has to. */
export function assertOnlyMarked(id: string, before: Loose, after: Loose, installationUID: string): void {
  const { metadata: was, ...content } = before;
  const { metadata: is, ...contentNow } = after;
  assert.equal(contentNow.spec, content.spec, id);
  for (const part of ['data', 'rules', 'roleRef', 'subjects', 'secrets'])
    assert.equal(contentNow[part], content[part], id);
  assert.is(is.uid, was.uid, id);
  // Of a Deployment the server counts annotations as well; pods come from the template alone.
  assert.is(
    is.generation,
    was.generation === undefined ? undefined : was.generation + (before.kind === 'Deployment' ? 1 : 0),
    id,
  );
  assert.is(is.deletionTimestamp, undefined, id);
  const { [annotations.id]: mark, ...notes } = is.annotations;
  assert.is(mark, id);
  assert.equal(notes, was.annotations ?? {}, id);
  const marks: readonly string[] = [labels.managedBy, labels.release, labels.phase, labels.installationUID];
  const others = (all: Loose = {}) => Object.fromEntries(Object.entries(all).filter(([key]) => !marks.includes(key)));
  assert.equal(others(is.labels), others(was.labels), id);
  assert.is(is.labels[labels.managedBy], 'keelson', id);
  assert.is(is.labels[labels.installationUID], installationUID, id);
  if (is.namespace !== undefined && before.kind !== 'PersistentVolumeClaim')
    assert.equal(
      is.ownerReferences?.map((owner: Loose) => owner.uid),
      [installationUID],
      id,
    );
  assert.ok(
    is.managedFields.some((entry: Loose) => entry.manager === 'keelson' && entry.operation === 'Apply'),
    id,
  );
}

/** Paths of fields that a manager still holds of an object, its status apart. */
export function heldBy(object: Loose, manager: string): string[] {
  const paths: string[] = [];
  const walk = (fields: Loose, at: string): void => {
    for (const [step, child] of Object.entries<Loose>(fields)) {
      if (step === '.') continue;
      if (Object.keys(child).length === 0) paths.push(`${at}.${step.slice(2)}`);
      else walk(child, `${at}.${step.slice(2)}`);
    }
  };
  for (const entry of object.metadata.managedFields)
    if (entry.manager === manager && entry.subresource !== 'status') walk(entry.fieldsV1, '');
  return paths.sort();
}

/** The plan of the release as its report tells it. */
export const planOf = async (bed: NetworkBed): Promise<Loose> =>
  JSON.parse((await bed.get(paths.plan)).data['plan.json']);
