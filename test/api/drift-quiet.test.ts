import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { startApiServer } from '../apiserver/server.ts';
import type { RequestRecord } from '../faults/plan.ts';
import { type DriftBed, driftBed } from './drift-bed.ts';
import { kindsPhases } from './drift-kinds.ts';
import { until } from './kubeBed.ts';
import { payloadMutations } from './slice-bed.ts';
import { configMap, namespaceObject } from './slice-payload.ts';

/**
 * Requests about objects of the payload by themselves, whether they read, ask or write. Installations are those of other
 * files, which use the same server: the executor looks at every one that comes or goes.
 */
const aboutObjects = (bed: DriftBed): string[] =>
  bed.plan
    .requests(
      ({ verb, resource, namespace }) =>
        !['list', 'watch', 'other'].includes(verb) &&
        !['events', 'kubeovninstallations'].includes(resource ?? '') &&
        namespace !== bed.system,
    )
    .map(({ verb, resource, name, dryRun }) => `${dryRun ? 'dry ' : ''}${verb} ${resource}/${name}`);

const sweepMs = 500;

/** Waits until every place was listed so often; answers the lists in their order. */
async function sweeps(bed: DriftBed, places: number, times: number): Promise<string[]> {
  const lists = (): RequestRecord[] =>
    bed.plan.requests(({ verb, namespace }) => verb === 'list' && namespace === undefined);
  await until(`${times} sweeps`, () => lists().length >= places * times, 30_000);
  return lists().map(({ resource }) => resource);
}

test('objects of 24 kinds as the API server writes them: no drift, and no request for any over two sweeps', async () => {
  const bed = await driftBed({
    phases: ({ names }) => kindsPhases(names),
    drift: { sweep: { everyMs: sweepMs, jitter: 0 } },
  });
  try {
    const kinds = new Set(
      kindsPhases(bed.names).flatMap(({ manifests }) => manifests.map(({ object }) => object.kind)),
    );
    const places = kinds.size;
    bed.plan.resetLog();
    const swept = Map.groupBy(await sweeps(bed, places, 3), (resource) => resource);
    assert.equal(aboutObjects(bed), [], 'what the answers to our own writes explain costs nothing');
    const counts = [...swept.values()].map(({ length }) => length);
    assert.is(counts.length, places);
    assert.ok(Math.min(...counts) >= 2 && Math.max(...counts) <= 4, `one list per kind and sweep: ${counts}`);

    await bed.restart();
    await sweeps(bed, places, 4);
    const asked = aboutObjects(bed);
    const dry = asked.filter((line) => line.startsWith('dry '));
    console.log(`${places} kinds: ${dry.length} doubts after a restart: ${dry.join(', ')}`);
    assert.equal([...new Set(dry)].length, dry.length, 'each doubt is asked about once');
    assert.equal(
      asked.filter((line) => !/^(dry apply|get) /.test(line)),
      [],
    );
    bed.plan.resetLog();
    await sweeps(bed, places, 2);
    assert.equal(aboutObjects(bed), [], 'and remembered');
    assert.equal(await bed.events(), []);
  } finally {
    await bed.close();
  }
});

test('the API server dies and comes back: everything is listed anew before anything is written', async () => {
  const server = await startApiServer({ tools: { onProgress: (line) => console.error(line) } });
  const bed = await driftBed({
    own: server,
    phases: ({ names: { namespace } }) => [
      {
        name: 'all',
        manifests: [{ object: namespaceObject(namespace) }, { object: configMap(namespace, 'a') }],
      },
    ],
  });
  try {
    await server.kill9();
    bed.plan.resetLog();
    await server.restart();
    await bed.kubectl('patch', 'configmap/a', '--type=merge', '-p', '{"data":{"value":"meanwhile"}}');
    await bed.untilObject('configmaps', 'a', 'it is set back', (o) => o.data.value === 'one');
    const [first] = payloadMutations(bed.plan, bed.system);
    for (const resource of ['configmaps', 'namespaces']) {
      const before = bed.plan.log.filter(
        (r) => r.verb === 'list' && r.resource === resource && r.namespace === undefined && r.status === 200,
      );
      assert.ok(
        (before[0]?.sequence ?? Number.POSITIVE_INFINITY) < (first?.sequence ?? 0),
        `${resource} were listed first`,
      );
    }
    assert.equal(bed.plan.violations, []);
  } finally {
    await bed.close();
    await server.stop();
  }
});

test.run();
