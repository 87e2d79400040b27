import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { findReason } from '../../constructs/api/reasons.ts';
import { longestNoteBytes } from '../../executor/kube/events.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { movedNews } from '../../executor/release/drift-news.ts';

const release: KubeObject = {
  apiVersion: 'keelson.dev/v1alpha1',
  kind: 'Release',
  metadata: { name: 'manifests-demo', namespace: 'keelson-system', uid: 'uid-1' },
};
const ids = (count: number, name = 'map'): string[] =>
  Array.from({ length: count }, (_, n) => `/ConfigMap/demo/${name}-${count - n}`);

test('what one pass adopted or removed is one Event of the Release, with a count and the first names', () => {
  const news = movedNews(release, { how: 'pruned', ids: ids(7) });
  assert.equal(news.regarding, {
    apiVersion: 'keelson.dev/v1alpha1',
    kind: 'Release',
    namespace: 'keelson-system',
    name: 'manifests-demo',
    uid: 'uid-1',
  });
  assert.equal([news.type, news.reason, news.action], ['Normal', 'Pruned', 'Prune']);
  const named = [1, 2, 3, 4, 5].map((n) => `ConfigMap demo/map-${n}`).join(', ');
  assert.is(news.note, `7 objects were removed: ${named} and 2 more`);
  const one = movedNews(release, { how: 'adopted', ids: ['apps/Deployment/kube-system/ovn-central'] });
  assert.equal(
    [one.reason, one.action, one.note],
    ['Adopted', 'Adopt', '1 object was adopted: Deployment.apps kube-system/ovn-central'],
  );
  for (const { reason } of [news, one]) assert.ok(findReason(reason), reason);
});

test('the order in which objects went does not make another Event; many long names stay a short one', () => {
  const [there, back] = [ids(3), ids(3).reverse()].map((of) => movedNews(release, { how: 'pruned', ids: of }).note);
  assert.is(there, back);
  const { note } = movedNews(release, { how: 'adopted', ids: ids(5_000, 'm'.repeat(150)) });
  assert.ok(Buffer.byteLength(note) < longestNoteBytes, note);
});

test.run();
