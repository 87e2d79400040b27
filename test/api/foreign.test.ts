import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { managers } from '../../constructs/api/constants.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { payloadMutations, type SliceBed, withBed } from './slice-bed.ts';
import { inPlace, spanPayload, want } from './spans-bed.ts';

/** Others who look after the same objects: they are named, and nothing is written against them. */

const pathOf = (bed: SliceBed, name: string): string => `/api/v1/namespaces/${bed.names.namespace}/configmaps/${name}`;

/** What another tool applies: its marks, and a field of its own. */
const applyAs = (bed: SliceBed, name: string, manager: string, metadata: JsonObject, theirs = 'yes') =>
  bed.server.admin.expect('PATCH', pathOf(bed, name), {
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data: { theirs } },
    type: 'application/apply-patch+yaml',
    query: { fieldManager: manager },
  });

/** Times of managedFields are in whole seconds: another tool goes on writing until its time is past that of ours. */
async function applyLater(bed: SliceBed, name: string, manager: string, metadata: JsonObject): Promise<void> {
  for (let n = 0; ; n += 1) {
    const { body } = await applyAs(bed, name, manager, metadata, `${n}`);
    const answer = body as KubeObject;
    const timeOf = (who: string): string => {
      const entry = answer.metadata.managedFields?.find((one) => one.manager === who && one.operation === 'Apply');
      return entry?.time ?? '';
    };
    if (timeOf(manager) > timeOf(managers.objects)) return;
  }
}

test('objects that exist are told with the tool that they are marked as of', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const helm = { 'meta.helm.sh/release-name': 'shop', 'meta.helm.sh/release-namespace': 'web' };
    await applyAs(bed, 'a', 'helm', { annotations: helm });
    const flux = { 'kustomize.toolkit.fluxcd.io/name': 'apps', 'kustomize.toolkit.fluxcd.io/namespace': 'flux-system' };
    await applyAs(bed, 'b', 'kustomize-controller', { labels: flux });
    const argo = { 'argocd.argoproj.io/tracking-id': `store:/ConfigMap:${bed.names.namespace}/c` };
    await applyAs(bed, 'c', 'argocd-controller', { annotations: argo });
    await want(bed, await spanPayload(bed, { value: 'A' }));
    const refused = await bed.untilStatus('it is refused', (s) => s.condition('Accepted')?.status === 'False');
    const told = JSON.stringify(refused.raw.failures);
    assert.match(told, /marked as of Helm release web\/shop/);
    assert.match(told, /marked as of Kustomization flux-system\/apps/);
    assert.match(told, /marked as of Application store of Argo CD/);
    assert.equal(payloadMutations(executor.plan, bed.system), []);
  }));

test('an object of ours that another tool has begun to write holds the next payload up, until it stops', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const a = await spanPayload(bed, { value: 'A' });
    await want(bed, a);
    await inPlace(bed, a);
    await applyLater(bed, 'a', 'kustomize-controller', {
      labels: { 'kustomize.toolkit.fluxcd.io/name': 'apps', 'kustomize.toolkit.fluxcd.io/namespace': 'flux-system' },
    });
    executor.plan.resetLog();
    const b = await spanPayload(bed, { value: 'B' });
    await want(bed, b);
    const held = await bed.untilStatus('it waits', (s) => s.condition('Accepted')?.reason === 'ForeignController');
    assert.match(
      held.condition('Accepted')?.message ?? '',
      /Kustomization flux-system\/apps looks after it too: kustomize-controller writes/,
    );
    assert.equal(
      payloadMutations(executor.plan, bed.system).filter(({ name }) => name !== 'a'),
      [],
    );
    // The other tool lets go: an empty apply gives up all that it had.
    await bed.server.admin.expect('PATCH', pathOf(bed, 'a'), {
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } },
      type: 'application/apply-patch+yaml',
      query: { fieldManager: 'kustomize-controller' },
    });
    await inPlace(bed, b);
  }));

test.run();
