import * as assert from 'uvu/assert';
import { systemNamespace } from '../../../constructs/api/constants.ts';
import type { Cluster } from '../types.ts';

/** Nothing that holds an installation together goes by a plain `kubectl delete`. */
export async function expectGuarded(cluster: Cluster): Promise<void> {
  const guarded: readonly (readonly string[])[] = [
    ['-n', 'kube-system', 'kubeovninstallation', 'local'],
    ['-n', 'kube-system', 'kubeovninstallations', '--all'],
    ['-n', systemNamespace, 'release', 'manifests-demo'],
    ['crd', 'releases.keelson.dev'],
    ['crd', 'kubeovninstallations.network.keelson.dev'],
    ['namespace', systemNamespace],
  ];
  for (const what of guarded)
    try {
      await cluster.kubectl(['delete', '--wait=false', ...what]);
      assert.unreachable(`${what.join(' ')} was deleted`);
    } catch (error) {
      assert.match(String(error), /keelson-deletion-guard.*keelson\.dev\/confirm-delete=[0-9a-f-]{36}/s);
    }
}
