import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { Rendered } from '../../renderer/render.ts';
import { controlNodes, type Loose, type NetworkBed, networkBed, type Workshop, workshop } from './network-bed.ts';
import { networkRelease } from './network-folder.ts';

/** A network with probes, rendered from a whole chart by the real Helm, as a real API server takes it. */
const test = suite<{ shop: Workshop; bed: NetworkBed }>('evidence render');

const pinned = (name: string, digit: string): string =>
  `registry.example.com/keelson/${name}@sha256:${digit.repeat(64)}`;
const images = { executor: pinned('keelson', 'e'), probe: pinned('probe', 'd') };

test.before(async (context) => {
  context.shop = await workshop();
  context.bed = await networkBed(context.shop, { nodes: controlNodes(3) });
});
test.after(async ({ shop, bed }) => {
  await bed.close();
  await shop.close();
});

const workloadsOf = (rendered: Rendered): Loose[] =>
  [...networkRelease(rendered).objects.values()].filter((object: Loose) => object.spec?.template !== undefined);
const namesOf = (object: Loose): string[] => object.spec.template.spec.containers.map(({ name }: Loose) => name);
const systemObjects = (rendered: Rendered): string =>
  [...rendered.tree]
    .filter(([path]) => path.includes('10-system'))
    .map(([, bytes]) => Buffer.from(bytes).toString('utf8'))
    .join('\n');

test('the sidecars are beside both kinds of daemons, by digest, and the API server takes them', async ({ bed }) => {
  const [plain, probed] = [await bed.render(), await bed.render({ settings: { images } })];
  const [before, after] = [workloadsOf(plain), workloadsOf(probed)];
  const touched = after.filter((object) => namesOf(object).includes('keelson-probe'));
  assert.equal(touched.map(({ metadata }: Loose) => metadata.name).sort(), ['ovn-central', 'ovs-ovn']);
  const others = (list: Loose[]): Loose[] =>
    list.filter(({ metadata }: Loose) => !['ovn-central', 'ovs-ovn'].includes(metadata.name));
  assert.equal(others(after), others(before), 'nothing else changes');
  const isSidecar = ({ name }: Loose): boolean => ['keelson-probe', 'keelson-drain-probe'].includes(name);
  assert.equal(
    touched.map(({ metadata, spec }) => `${metadata.name} ${spec.template.spec.containers.filter(isSidecar).length}`),
    ['ovn-central 1', 'ovs-ovn 2'],
  );
  for (const object of touched) {
    for (const sidecar of object.spec.template.spec.containers.filter(isSidecar))
      assert.is(sidecar.image, images.probe);
    const { metadata, kind } = object;
    const path = `/apis/apps/v1/namespaces/${metadata.namespace}/${kind.toLowerCase()}s`;
    const taken = await bed.server.admin.request('POST', path, {
      query: { dryRun: 'All' },
      body: object as JsonObject,
    });
    assert.is(taken.status, 201, JSON.stringify(taken.body?.message));
    for (const stored of taken.body.spec.template.spec.containers.filter(isSidecar)) {
      assert.is(stored.ports, undefined);
      assert.is(stored.readinessProbe ?? stored.livenessProbe ?? stored.startupProbe, undefined);
    }
  }
  assert.not.match(systemObjects(plain), /--evidence|tokenreviews/);
  assert.match(systemObjects(probed), /--evidence[\s\S]*tokenreviews|tokenreviews[\s\S]*--evidence/);
});

test.run();
