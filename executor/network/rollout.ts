/**
 * What a change of sidecars does to the pods that carry them, and whether it may be done at all: the daemons of a pod end
 * with it, and come back from what lies on their node or claim. Pure.
 */
import type { PlanActions, PlanRisk } from '../../constructs/api/plan.ts';
import { deepEqual, isObject, type JsonObject, objectOf, objectsOf } from '../../constructs/lib/json.ts';
import { parseObjectId } from '../../constructs/lib/names.ts';
import type { RenderedPayload } from './injected.ts';

const databases = 'ovn-central';
const databaseFolder = '/etc/ovn';
const switches: ReadonlySet<string> = new Set(['ovs-ovn', 'ovs-ovn-dpdk']);
const workloads: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'DaemonSet']);

const shown = (id: string): string => {
  const { kind, namespace, name } = parseObjectId(id);
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
};

interface Rolled {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly spec: JsonObject;
}

/** Workloads among the objects whose pods are made anew. */
function rolled(before: RenderedPayload, after: RenderedPayload, ids: readonly string[]): Rolled[] {
  return ids.flatMap((id): Rolled[] => {
    const { group, kind, name } = parseObjectId(id);
    if (group !== 'apps' || !workloads.has(kind)) return [];
    const spec = objectOf(after.object(id)?.spec);
    return deepEqual(objectOf(before.object(id)?.spec).template, spec.template) ? [] : [{ id, kind, name, spec }];
  });
}

/** Whether a Deployment, or a StatefulSet, never takes a second pod away while the first has not come back. */
function oneAtATime({ kind, spec }: Rolled): boolean {
  if (kind !== 'Deployment') return objectOf(objectOf(spec.updateStrategy).rollingUpdate).maxUnavailable === undefined;
  const { type, rollingUpdate } = objectOf(spec.strategy);
  if ((spec.replicas ?? 1) === 1) return true;
  const { maxSurge, maxUnavailable } = objectOf(rollingUpdate);
  return type !== 'Recreate' && [0, '0', '0%'].some((none) => none === maxSurge) && maxUnavailable === 1;
}

/** Whether the folder of the databases is still there when their pod is not. */
function outlivesPods({ spec }: Rolled): boolean {
  const pod = objectOf(objectOf(spec.template).spec);
  const container = objectsOf(pod.containers).find(({ name }) => name === databases);
  const mount = objectsOf(container?.volumeMounts).find(
    ({ mountPath }) => String(mountPath).replace(/\/+$/, '') === databaseFolder,
  );
  const claimed = objectsOf(spec.volumeClaimTemplates).some(({ metadata }) => objectOf(metadata).name === mount?.name);
  const volume = objectsOf(pod.volumes).find(({ name }) => name === mount?.name);
  return mount !== undefined && (claimed || isObject(volume?.hostPath) || isObject(volume?.persistentVolumeClaim));
}

/** Why pods must not be made anew by this change; undefined when nothing stands against it. */
export function unsafeRollout(
  before: RenderedPayload,
  after: RenderedPayload,
  { configured, replaced }: Pick<PlanActions, 'configured' | 'replaced'>,
): string | undefined {
  const recreated = rolled(before, after, replaced).find(({ name }) => name === databases || switches.has(name));
  if (recreated !== undefined)
    return `${shown(recreated.id)} may be deleted and created again, all of its pods at once`;
  for (const workload of rolled(before, after, configured)) {
    if (workload.name !== databases) continue;
    if (!outlivesPods(workload))
      return `the databases of ${shown(workload.id)} lie in no folder of a node and in no claim, so that they would be lost with their pods`;
    if (!oneAtATime(workload))
      return `${shown(workload.id)} does not replace its pods one at a time (maxUnavailable 1, maxSurge 0), so that the databases could lose their quorum`;
  }
  return undefined;
}

function pace({ kind, spec }: Rolled): string {
  if (kind === 'DaemonSet') {
    const { type, rollingUpdate } = objectOf(spec.updateStrategy);
    if (type === 'OnDelete')
      return 'as a person deletes them (updateStrategy OnDelete); the phase waits until all are new';
    const { maxSurge = 0, maxUnavailable = 1 } = objectOf(rollingUpdate);
    return `node by node (maxUnavailable ${String(maxUnavailable)}, maxSurge ${String(maxSurge)})`;
  }
  return objectOf(spec.strategy).type === 'Recreate' || (spec.replicas ?? 1) === 1
    ? 'after it has ended'
    : 'one at a time';
}

function effect({ name }: Rolled): string {
  if (name === databases) return 'each takes its members of the OVN databases, and northd, along until it is back';
  if (switches.has(name))
    return 'Open vSwitch and ovn-controller of the node start anew, and packets of its pods may be lost meanwhile';
  return 'no daemon of the network is in them';
}

/** What a person is told before the pods are made anew, workload by workload. */
export const rolloutRisks = (before: RenderedPayload, after: RenderedPayload, ids: readonly string[]): PlanRisk[] =>
  rolled(before, after, ids).map((workload) => ({
    kind: 'restart',
    ids: [workload.id],
    message: `the pods of ${shown(workload.id)} are replaced, ${pace(workload)}: ${effect(workload)}`,
  }));
