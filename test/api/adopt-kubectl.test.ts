// time limit: 300s
/** Networks that kubectl made, by client-side and by server-side apply, are taken over as they are, and receive a change. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makePlan } from '../../constructs/api/plan.ts';
import { prunePolicy } from '../../constructs/api/release.ts';
import { kubectl } from '../apiserver/kubectl.ts';
import { assertOnlyMarked, heldBy, liveOf, manifests, planOf } from './adopt-bed.ts';
import {
  bypass,
  condition,
  gatesBypassed,
  type Loose,
  type NetworkBed,
  networkBed,
  paths,
  payloadMutations,
  type Workshop,
  workshop,
} from './network-bed.ts';
import { type ClusterText, networkRelease, releaseName } from './network-folder.ts';

const test = suite<{ shop: Workshop }>('adoption of what kubectl made');

test.before(async (context) => {
  context.shop = await workshop();
});
test.after(({ shop }) => shop.close());

const label = { 'example.com/part-of': 'network' };

const adopting = (
  takeManagers: string[],
  more: { planDigest?: string; suspendPhases?: string[]; pauseOnDegraded?: boolean } = {},
): Partial<ClusterText> => {
  const { planDigest, suspendPhases = [], pauseOnDegraded } = more;
  return {
    spec: {
      adoption: { enabled: true, selector: { matchLabels: label }, takeManagers },
      ...(pauseOnDegraded === undefined ? {} : { upgrade: { pauseOnDegraded } }),
    },
    settings: {
      releases: { [releaseName]: { suspendPhases, ...(planDigest === undefined ? {} : { approval: { planDigest } }) } },
    },
  };
};

/** Delivers, and waits until the Release says so about this very payload. */
async function deliver(bed: NetworkBed, text: Partial<ClusterText>, what: string, probe: (object: Loose) => boolean) {
  const rendered = await bed.render(text);
  await bed.deliver(rendered);
  const { digest } = networkRelease(rendered).index;
  const release = await bed.until(
    paths.release,
    what,
    (object) => object.status?.desired === digest && probe(object),
    90_000,
  );
  return { rendered, release, digest };
}

const accepted = (reason: string) => (object: Loose) => condition(object, 'Accepted')?.reason === reason;
const phases = ['definitions', 'access', 'central', 'data-plane'];

async function isAdopted(
  shop: Workshop,
  options: readonly string[],
  manager: string,
  operation: string,
): Promise<void> {
  const bed = await networkBed(shop);
  try {
    await bed.deliver(await bed.render(), ['10-system']);
    const input = await manifests(bed, label);
    const applied = await kubectl(bed.server, ['apply', ...options, '-f', '-'], { input });
    assert.is(applied.code, 0, applied.stderr);
    bed.playKubelets();
    const executor = await bed.executor(bypass);

    const refused = await deliver(bed, adopting([]), 'the manager to be named', (object) =>
      object.status.failures?.some((failure: Loose) => failure.reason === 'FieldConflict'),
    );
    const failures: Loose[] = refused.release.status.failures;
    assert.ok(failures.every(({ message }) => message.includes(`${manager} (${operation}) holds`)));
    const before = await liveOf(bed, refused.rendered);
    for (const object of before.values())
      assert.ok(
        object.metadata.managedFields.some(
          (entry: Loose) => entry.manager === manager && entry.operation === operation,
        ),
      );
    assert.equal(payloadMutations(executor.plan.log), []);

    const waiting = await deliver(
      bed,
      adopting([manager], { suspendPhases: phases }),
      'it to wait for a person',
      accepted('ApprovalRequired'),
    );
    const planDigest = waiting.release.status.plan.digest;
    // CI comes to the same digest from the files alone.
    const { content } = networkRelease(waiting.rendered).index;
    const planned = makePlan(undefined, content, { prune: prunePolicy.parse({}), classify: () => 'additive' });
    assert.is(planned.digest, planDigest);
    assert.ok((await planOf(bed)).adoption.take.every((entry: Loose) => entry.managers.join() === manager));
    assert.equal(payloadMutations(executor.plan.log), []);

    const approved = adopting([manager], { planDigest, suspendPhases: phases });
    const { rendered } = await deliver(
      bed,
      approved,
      'it to be adopted',
      (object) => condition(object, 'Ready')?.reason === 'PhaseSuspended',
    );
    const { uid } = (await bed.installation()).metadata;
    for (const [id, after] of await liveOf(bed, rendered)) {
      assertOnlyMarked(id, before.get(id), after, uid);
      const ours = new Set(heldBy(after, 'keelson'));
      assert.equal(
        heldBy(after, manager).filter((path) => ours.has(path)),
        [],
        id,
      );
    }
    const verbs = payloadMutations(executor.plan.log).map(({ verb, status }) => `${verb} ${status}`);
    assert.equal([...new Set(verbs)].sort(), ['apply 200', 'patch 200']);
    const events = await bed.until(
      '/apis/events.k8s.io/v1/namespaces/keelson-system/events',
      'the adoption to be told',
      ({ items }) => items.some(({ reason }: Loose) => reason === 'Adopted'),
    );
    const told = events.items.filter(({ reason }: Loose) => reason === 'Adopted');
    assert.equal(
      told.map(({ note }: Loose) => note.split(':')[0]),
      [`${before.size} objects were adopted`],
    );

    await deliver(bed, adopting([manager], { planDigest }), 'it to be carried out', gatesBypassed);
    for (const [id, after] of await liveOf(bed, rendered))
      assert.is(after.metadata.uid, before.get(id)?.metadata.uid, id);
    assert.not.match(JSON.stringify((await bed.get(paths.central)).spec), /kube-ovn:v/);

    executor.plan.resetLog();
    const changed = await deliver(
      bed,
      adopting([manager], { planDigest, pauseOnDegraded: true }),
      'the change to be carried out',
      (object) => object.status.actual === object.status.desired && gatesBypassed(object),
    );
    assert.is(changed.release.status.plan.changeClass, 'policy');
    assert.equal(payloadMutations(executor.plan.log), []);
    // An object that somebody removes is made again, by the one who owns it now.
    await bed.server.admin.expect('DELETE', paths.central);
    await bed.until(
      paths.central,
      'it to come back',
      ({ metadata }) => metadata.uid !== before.get('apps/Deployment/kube-system/ovn-central')?.metadata.uid,
    );
    assert.equal(executor.plan.violations, []);
  } finally {
    await bed.close();
  }
}

test('client-side apply: its fields are folded, its annotation stays', ({ shop }) =>
  isAdopted(shop, [], 'kubectl-client-side-apply', 'Update'));

test('server-side apply: its fields are folded as well, once it is listed', ({ shop }) =>
  isAdopted(shop, ['--server-side'], 'kubectl', 'Apply'));

test.run();
