import { readFile } from 'node:fs/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { evidenceTrust } from '../../constructs/api/constants.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { AuthorityKeeper } from '../../executor/pki/keeper.ts';
import type { Rendered } from '../../renderer/render.ts';
import { serviceAccountToken } from '../apiserver/namespace.ts';
import { sidecars } from './evidence-bed.ts';
import { edgeOf, until } from './kubeBed.ts';
import {
  condition,
  controlNodes,
  type Loose,
  type NetworkBed,
  networkBed,
  paths,
  system,
  type Workshop,
  workshop,
} from './network-bed.ts';
import { networkRelease } from './network-folder.ts';

/** A network with probes, rendered from a whole chart by the real Helm, as a real API server takes it. */
const test = suite<{ shop: Workshop; bed: NetworkBed }>('evidence render');

const pinned = (name: string, digit: string): string =>
  `registry.example.com/keelson/${name}@sha256:${digit.repeat(64)}`;
const images = { executor: pinned('keelson', 'e'), probe: pinned('probe', 'd') };

test.before(async (context) => {
  context.shop = await workshop();
  context.bed = await networkBed(context.shop, {
    nodes: controlNodes(3),
    with: ['controllers', 'scheduler', 'kwok'],
  });
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

test('central of another namespace is observed there, by the rights and for the namespaces that were rendered', async ({
  bed,
}) => {
  const where = 'hosted';
  const { admin } = bed.server;
  await admin.expect('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: where } },
  });
  const settings = { images, executor: { evidenceAtOnce: 16 } };
  const rendered = await bed.render({ settings, spec: { mode: 'centralOnly' }, namespace: where });
  assert.match(systemObjects(rendered), `--evidence-namespaces=${where}`);
  assert.match(systemObjects(rendered), '--evidence-at-once=16');
  await bed.deliver(rendered);
  const cars = sidecars();
  const evidencePace = { openEveryMs: 200, settledEveryMs: 300 };
  await bed.executor({ evidence: cars.evidence, evidenceNamespaces: [where], evidencePace });
  const path = paths.installation.replace('/kube-system/', `/${where}/`);
  const verified = await bed.until(
    path,
    'it to be verified',
    (one) => condition(one, 'Ready')?.reason === 'VerificationComplete',
    60_000,
  );
  assert.is(condition(verified, 'TopologyRecorded').status, 'True');
  assert.equal([...cars.asked].sort(), ['central n1', 'central n2', 'central n3']);

  // Probes of that namespace are told whom to believe, under the account of the executor.
  const token = await serviceAccountToken(admin, system, 'keelson-executor');
  const edge = edgeOf(bed.server, { token });
  const said: string[] = [];
  const options = { client: edge.client, clock: systemClock, namespace: system, probeNamespaces: [where] };
  await new AuthorityKeeper({ ...options, log: (_level, message) => said.push(message) }).step(
    AbortSignal.timeout(10_000),
  );
  await edge.transport.close();
  assert.equal(said, []);
  const trust = await bed.get(`/api/v1/namespaces/${where}/configmaps/${evidenceTrust.name}`);
  assert.match(trust.data[evidenceTrust.key], 'BEGIN CERTIFICATE');
});

test('the way through a kubelet is granted there by the two objects that the documentation shows, and by nothing else', async ({
  bed,
}) => {
  const { admin } = bed.server;
  const may = async (): Promise<string[]> => {
    const asked = ['get', 'create'].map(async (verb) => {
      const resourceAttributes = { namespace: 'hosted', verb, resource: 'pods', subresource: 'portforward' };
      const user = `system:serviceaccount:${system}:keelson-executor`;
      const groups = ['system:serviceaccounts', `system:serviceaccounts:${system}`, 'system:authenticated'];
      const { body } = await admin.expect('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
        body: {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SubjectAccessReview',
          spec: { user, groups, resourceAttributes },
        },
      });
      return body.status.allowed === true ? [verb] : [];
    });
    return (await Promise.all(asked)).flat();
  };
  assert.equal(await may(), []);
  const page = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8');
  const section = page.slice(page.indexOf('### The way through a kubelet in another namespace'));
  const [, text = ''] = /```yaml\n([\s\S]*?)```/.exec(section) ?? [];
  const { documents } = parseYaml(text, 'operations.md');
  assert.is(documents.length, 2);
  for (const { value } of documents) await bed.apply(value as object, 'a person');
  await until('it to be granted', async () => (await may()).length === 2);
});

test.run();
