/** The retained record of a topology in the cluster: read, and made once. */
import { managers } from '../../constructs/api/constants.ts';
import {
  readTopologyRecord,
  type TopologyRecord,
  topologyConfigMap,
  topologyDigest,
} from '../../constructs/api/topology.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { WaitTimeout, waitFor } from '../../constructs/lib/wait.ts';
import type { KubeClient } from '../kube/client.ts';
import { type KubeObject, uidOf } from '../kube/types.ts';
import type { RecordPin, RecordRead } from '../observe/topology-record.ts';
import type { WriteGuard } from '../release/domain.ts';
import { type Observations, recordable } from './evidence.ts';

/** Reads a record, uncached. */
export async function readRecord(
  client: KubeClient,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<RecordRead> {
  const found = await client.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name }, { signal });
  if (found.type === 'absent') return { type: 'absent' };
  if (found.type !== 'found') return { type: 'unread', message: found.message };
  const held = readTopologyRecord(found.object);
  return { type: 'found', uid: uidOf(found.object), ...(held === undefined ? {} : { held }) };
}

/**
 * The topology to record by a round that began from now on; undefined when none ended in time, or it is not to be recorded. To
 * be asked under the Leases of OVN central: then whoever was changing its members before has ended.
 */
export async function topologyFromNowOn(
  observations: Observations,
  installationUID: string,
  { clock, limitMs }: { readonly clock: Clock; readonly limitMs: number },
  signal: AbortSignal,
): Promise<TopologyRecord | undefined> {
  const since = clock.monotonic();
  observations.hurry(installationUID);
  const probe = async (): Promise<{ readonly record: TopologyRecord | undefined } | undefined> => {
    const observed = observations.of(installationUID);
    if (observed === undefined || observed.verdict.time.startedTick < since) return undefined;
    return { record: recordable(observed, clock.monotonic()) };
  };
  try {
    const what = 'a round under the Leases';
    return (await waitFor({ what, limitMs, intervalMs: 100, clock, signal, probe })).record;
  } catch (error) {
    if (error instanceof WaitTimeout) return undefined;
    throw error;
  }
}

/**
 * Makes the record under the Leases of OVN central, and answers what status is to pin. A record of the same content that is
 * there already is the one: an earlier attempt got as far as this.
 */
export async function makeRecord(
  client: KubeClient,
  namespace: string,
  record: TopologyRecord,
  guard: WriteGuard,
  signal: AbortSignal,
): Promise<{ readonly pin: RecordPin } | { readonly problem: Problem }> {
  const configMap = topologyConfigMap(record, namespace) as KubeObject;
  const name = configMap.metadata.name ?? '';
  const object = `ConfigMap ${namespace}/${name}`;
  guard.check();
  const applied = await client.apply(configMap, { fieldManager: managers.objects, signal });
  if (!('object' in applied))
    return {
      problem: {
        reason: 'TopologyNotRecorded',
        message: `the record could not be written: ${applied.message}`,
        object,
      },
    };
  const held = readTopologyRecord(applied.object);
  const digest = topologyDigest(record);
  if (held?.digest !== digest || applied.object.immutable !== true)
    return { problem: { reason: 'TopologyNotRecorded', message: 'what is there says something else', object } };
  return { pin: { name, uid: uidOf(applied.object), digest } };
}
