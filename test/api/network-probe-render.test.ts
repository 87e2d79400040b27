/** The network probe in a whole tree: lock, chart, Helm, payload and rights, as `keelson lock` and `keelson render` make them. */
import * as assert from 'uvu/assert';
import type { InstallationSpecInput } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import { inventoryOf } from '../pure/network-fixture.ts';
import type { Loose, Workshop } from './network-bed.ts';
import { networkRelease, tryRender } from './network-folder.ts';
import { workshopSuite } from './network-suite.ts';

const test = workshopSuite('network probe render');

const pinned = (name: string, digit: string): string =>
  `registry.example.com/keelson/${name}@sha256:${digit.repeat(64)}`;
const images = { executor: pinned('keelson', 'e'), probe: pinned('probe', 'd') };

async function attempt(shop: Workshop, spec: Partial<InstallationSpecInput>, settings: object) {
  const inventory = inventoryOf(3);
  return tryRender(shop, {
    inventory,
    chart: await shop.chart(),
    spec: { networkProbe: { image: images.probe }, ...spec },
    settings: { acceptUnverifiedNetwork: false, images, ...settings },
  });
}

test('the probe is the last phase, by digest; the executor may write its objects by name and no others', async ({
  shop,
}) => {
  const outcome = await attempt(shop, { networkStack: 'dual_stack' }, {});
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  const { index, objects } = networkRelease(outcome.rendered);
  const last = index.content.phases.at(-1);
  assert.is(last?.dir, '50-network-probe');
  assert.equal(
    last?.gates.map(({ type, scope }) => `${type}(${scope})`),
    ['WorkloadsReady(network-probe)', 'NetworkReady(network-probe)'],
  );
  assert.equal(last?.objects.map(({ kind, name }) => `${kind}/${name}`).sort(), [
    'DaemonSet/keelson-network-client',
    'DaemonSet/keelson-network-server',
    'Service/keelson-network-probe',
  ]);
  assert.ok(last?.objects.every(({ bind }) => bind?.some(({ what }) => what === 'owner')));
  const sets = [...objects.values()].filter(({ metadata }: Loose) =>
    /^keelson-network-(client|server)$/.test(metadata.name),
  );
  const ovs = [...objects.values()].find(({ metadata }: Loose) => metadata.name === 'ovs-ovn') as Loose;
  assert.is(sets.length, 2);
  for (const { spec } of sets as Loose[]) {
    assert.is(spec.template.spec.containers[0].image, images.probe);
    assert.equal(spec.template.spec.nodeSelector, ovs.spec.template.spec.nodeSelector);
    assert.equal(spec.template.spec.tolerations, ovs.spec.template.spec.tolerations);
  }
  const system = [...outcome.rendered.tree]
    .filter(([path]) => path.includes('10-system'))
    .map(([, bytes]) => Buffer.from(bytes).toString('utf8'))
    .join('\n');
  for (const name of ['keelson-network-client', 'keelson-network-server', 'keelson-network-probe'])
    assert.match(system, `- ${name}`);
});

test('P9: centralOnly renders none, and a data plane without one has to be meant', async ({ shop }) => {
  const central = await attempt(shop, { mode: 'centralOnly' }, {});
  if (!central.ok) throw new Error(JSON.stringify(central.problems));
  const names = networkRelease(central.rendered).index.content.phases.map(({ name }) => name);
  assert.not(names.includes('network-probe'));
  const { executor } = images;
  const unasked = await attempt(shop, {}, { images: { executor } });
  assert.equal(unasked.ok ? [] : unasked.problems.map(({ reason }) => reason), ['ProbeImageMissing']);
});

test.run();
