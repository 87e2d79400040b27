import * as assert from 'uvu/assert';
import { labels } from '../../../constructs/api/constants.ts';
import { isObject, type JsonObject } from '../../../constructs/lib/json.ts';
import { dumpYaml } from '../../../constructs/lib/yaml.ts';
import type { PipelineBed } from './pipeline-bed.ts';
import type { Moment } from './pipeline-kill.ts';
import { conditionOf, textAt, until } from './pipeline-look.ts';

/** Release of some 40 plain objects, to be killed, cut off and powered off in the middle of. */
const bulk = 'manifests-bulk';
const namespace = 'bulk';
const configMaps = 24;
/** Objects of the payload; the executor's own records carry the release and no phase. */
const selector = `${labels.release}=${bulk},${labels.phase}`;

const object = (kind: string, name: string, fields: JsonObject = {}): JsonObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { name, ...(kind === 'Namespace' ? {} : { namespace }) },
  ...fields,
});

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, n) => from + n);

/** Objects of a revision by phase: every ConfigMap changes, one that only this revision has comes, that of the last goes. */
function objectsOf(revision: number): Record<string, JsonObject[]> {
  const data = { data: { revision: String(revision) } };
  const part = (from: number, to: number): JsonObject[] =>
    range(from, to).map((n) => object('ConfigMap', `part-${n}`, data));
  const ports = { spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 80 }] } };
  return {
    '10-base': [
      object('Namespace', namespace),
      ...part(0, 8),
      ...range(0, 8).map((n) => object('ServiceAccount', `account-${n}`)),
    ],
    '20-middle': [...part(8, 16), ...range(0, 6).map((n) => object('Service', `service-${n}`, ports))],
    '30-end': [...part(16, configMaps), object('ConfigMap', `only-${revision}`, data)],
  };
}

/** Writes the manifests of a revision into the specs. */
export function writeBulk(bed: PipelineBed, revision: number): void {
  for (const [phase, objects] of Object.entries(objectsOf(revision)))
    bed.write(`manifests/bulk/${phase}/objects.yaml`, objects.map(dumpYaml).join('---\n'));
}

/** So many ConfigMaps carry the revision. */
export const carried = (revision: number, count: number): Moment => ({
  what: `${count} objects of revision ${revision}`,
  selection: { apiVersion: 'v1', kind: 'ConfigMap', namespace },
  reached: (objects) =>
    [...objects.values()].filter((each) => textAt(each, '/data/revision') === String(revision)).length >= count,
});

/** The ledger names the objects of the first revision; none of them is written yet. */
export const intended: Moment = {
  what: 'the intent of the release',
  selection: {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    namespace: 'keelson-system',
    labelSelector: `${labels.holds}=ledger`,
  },
  reached: (objects) =>
    [...objects.values()].some((ledger) => textAt(ledger, '/data').includes('/ConfigMap/bulk/part-0')),
};

/** What the revision before alone had is pruned. */
export const pruned = (revision: number): Moment => ({
  what: `the prune of revision ${revision}`,
  selection: { apiVersion: 'v1', kind: 'ConfigMap', namespace },
  reached: (objects) =>
    objects.has(`${namespace}/only-${revision}`) && !objects.has(`${namespace}/only-${revision - 1}`),
});

/** UIDs of all objects of the release, by kind and name; each is there once, or it would have been written twice. */
export async function bulkObjects(bed: PipelineBed): Promise<Map<string, string>> {
  const kinds = ['ConfigMap', 'ServiceAccount', 'Service', 'Namespace'];
  const lists = await Promise.all(
    kinds.map((kind) => bed.look.client.list({ apiVersion: 'v1', kind, labelSelector: selector })),
  );
  const found = lists.flatMap((list, index) => {
    if (list.type !== 'listed') throw new Error(list.message);
    return list.items.map(({ metadata }) => [`${kinds[index]}/${metadata.name}`, metadata.uid ?? ''] as const);
  });
  return new Map(found);
}

/**
 * Waits until a revision is in place and proves it: the objects of the payload and no others, each with its content, those
 * of before under their UIDs, and a history that tells it once.
 */
export async function converged(
  bed: PipelineBed,
  revision: number,
  before: ReadonlyMap<string, string>,
): Promise<void> {
  const { look } = bed;
  const digest = look.digest(bulk);
  const release = await until(`revision ${revision} to be in place`, 90_000, async (saw) => {
    const found = await look.release(bulk);
    saw(textAt(found, '/status'));
    const done = textAt(found, '/status/actual') === digest && conditionOf(found, 'Ready')?.status === 'True';
    return done && textAt(found, '/status/observedGeneration') === textAt(found, '/metadata/generation')
      ? found
      : undefined;
  });
  const live = await bulkObjects(bed);
  const wanted = look.payload(bulk).map(({ kind, name }) => `${kind}/${name}`);
  assert.equal([...live.keys()].sort(), wanted.sort(), `revision ${revision}`);
  for (const [id, uid] of before) if (live.has(id)) assert.is(live.get(id), uid, `${id} was made anew`);
  const parts = await look.client.list({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    namespace,
    labelSelector: selector,
  });
  assert.equal(
    parts.type === 'listed' ? [...new Set(parts.items.map((each) => textAt(each, '/data/revision')))] : parts,
    [String(revision)],
  );
  const history = release.status?.history;
  const entries = (Array.isArray(history) ? history : []).filter(isObject);
  const [newest] = entries;
  assert.is(newest?.digest, digest);
  assert.equal(
    entries.map(({ state }) => state),
    entries.map(() => 'Completed'),
  );
  assert.is(new Set(entries.map((entry) => entry.digest)).size, revision, 'every payload stands in the history once');
  const times = entries.flatMap((entry) => [String(entry.completedAt), String(entry.startedAt)]);
  assert.equal(times, times.toSorted().toReversed(), 'newest first, completed after it was started');
}
