/** Whether the namespaces let in the pods that a network needs. Pure. */
import { isObject, type JsonValue, objectsOf } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeObject } from '../kube/types.ts';

const enforce = 'pod-security.kubernetes.io/enforce';

const member = (value: JsonValue | undefined, key: string): JsonValue | undefined =>
  isObject(value) ? value[key] : undefined;

/** What of a workload only the privileged level lets in; undefined where nothing is. */
function privilege(object: KubeObject): string | undefined {
  const pod = member(member(object.spec, 'template'), 'spec');
  if (member(pod, 'hostNetwork') === true) return 'the network of the host';
  if (objectsOf(member(pod, 'volumes')).some(({ hostPath }) => hostPath !== undefined)) return 'folders of the host';
  const containers = [...objectsOf(member(pod, 'containers')), ...objectsOf(member(pod, 'initContainers'))];
  return containers.some(({ securityContext }) => member(securityContext, 'privileged') === true)
    ? 'a privileged container'
    : undefined;
}

const workloads = new Set(['Deployment', 'DaemonSet', 'StatefulSet', 'Job']);

export interface NamespaceLabels {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** One problem for each namespace that would refuse pods; the first of them is named, and how many more there are. */
export function podSecurityProblems(objects: readonly KubeObject[], namespaces: readonly NamespaceLabels[]): Problem[] {
  return namespaces.flatMap(({ name, labels }): Problem[] => {
    const level = labels[enforce];
    if (level === undefined || level === 'privileged') return [];
    const refused = objects.filter(
      (object) => workloads.has(object.kind) && object.metadata.namespace === name && privilege(object) !== undefined,
    );
    const [first, ...more] = refused;
    if (first === undefined) return [];
    const rest = more.length === 0 ? '' : `, as ${more.length} more do`;
    return [
      {
        reason: 'PodSecurityTooStrict',
        message: `it lets in no pods beyond level ${level}, and ${first.kind} ${first.metadata.name ?? ''} needs ${privilege(first) ?? ''}${rest}`,
        object: `Namespace ${name}`,
        path: `metadata.labels['${enforce}']`,
        value: level,
        remedy: `label the namespace ${enforce}=privileged`,
      },
    ];
  });
}

/** Namespaces whose workloads need more than an unprivileged pod. */
export const privilegedNamespaces = (objects: readonly KubeObject[]): string[] => [
  ...new Set(
    objects.flatMap((object) =>
      workloads.has(object.kind) && privilege(object) !== undefined ? [object.metadata.namespace ?? ''] : [],
    ),
  ),
];
