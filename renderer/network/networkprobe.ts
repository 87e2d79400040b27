/** The network probe of an installation, where its pods can run: on the nodes that carry Open vSwitch. */
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import { networkProbeObjects } from '../../constructs/k8s/networkprobe.ts';
import type { JsonObject, JsonValue } from '../../constructs/lib/json.ts';
import { type ChartObject, groupKindOf, items, member, podSpecOf, stringMap, toChartObject } from './object.ts';

const switches: readonly string[] = ['ovs-ovn', 'ovs-ovn-dpdk'];

/** The objects of the probe; none where none is wanted, and none where there is no data plane. */
export function networkProbeOf(
  spec: InstallationSpec,
  namespace: string,
  pullSecrets: readonly string[],
  objects: readonly ChartObject[],
): ChartObject[] {
  const image = spec.networkProbe?.image;
  if (image === undefined || spec.mode === 'centralOnly') return [];
  const scheduling = schedulingOf(objects);
  const made = networkProbeObjects({ namespace, image, pullSecrets, scheduling, stack: spec.networkStack });
  return made.flatMap((body) => toChartObject(body) ?? []);
}

/** Nodes that a pod specification allows, as terms of an affinity of which one has to hold. */
function termsOf(podSpec: JsonObject): JsonObject[] {
  const affinity = member(member(podSpec, 'affinity'), 'nodeAffinity');
  const terms = items(member(affinity, 'requiredDuringSchedulingIgnoredDuringExecution').nodeSelectorTerms);
  const selected = Object.entries(stringMap(podSpec.nodeSelector))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]): JsonObject => ({ key, operator: 'In', values: [value] }));
  return (terms.length === 0 ? [{}] : terms).map((term) => ({
    ...term,
    matchExpressions: [...items(term.matchExpressions), ...selected],
  }));
}

const distinct = (values: readonly JsonObject[]): JsonObject[] => [
  ...new Map(values.map((value) => [JSON.stringify(value), value])).values(),
];

/** Where any of the workloads of Open vSwitch may run. */
function schedulingOf(objects: readonly ChartObject[]): JsonObject {
  const podSpecs = objects
    .filter((object) => groupKindOf(object) === 'apps/DaemonSet' && switches.includes(object.name))
    .map(podSpecOf)
    .filter((podSpec) => podSpec !== undefined);
  const tolerations = distinct(podSpecs.flatMap((podSpec) => items(podSpec.tolerations)));
  const [only] = podSpecs;
  const place: Record<string, JsonValue> = {};
  if (podSpecs.length > 1 || (only !== undefined && Object.keys(member(only, 'affinity')).length > 0)) {
    const nodeSelectorTerms = distinct(podSpecs.flatMap(termsOf));
    place.affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } };
  } else if (only !== undefined) place.nodeSelector = stringMap(only.nodeSelector);
  return { ...place, ...(tolerations.length === 0 ? {} : { tolerations }) };
}
