/**
 * What a rendered chart must hold before anything is made of it. Each check answers every problem it finds; the caller
 * collects them all. The numbers are those of the checks in docs/network-rendering.md.
 */
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { formatEndpoint } from './endpoint.ts';
import {
  annotationsOf,
  type ChartObject,
  describeObject,
  envValues,
  groupKindOf,
  items,
  member,
  objectId,
  podSpecOf,
  stringMap,
} from './object.ts';
import { isCentral, isCentralWorkload, isClusterScoped, isDataPlaneWorkload, planeOf } from './table.ts';
import { chartTLSReferences, chartTLSSecret } from './tls.ts';
import { externalEndpoints, tlsSecretName } from './values.ts';

export interface AcceptanceInput {
  readonly spec: InstallationSpec;
  readonly namespace: string;
  readonly objects: readonly ChartObject[];
  readonly centralAddresses: readonly string[];
  readonly touchedBySelector: readonly string[];
  readonly extraKinds: readonly string[];
}

type Check = (input: AcceptanceInput) => Problem[];

const problem = (
  reason: string,
  object: ChartObject | undefined,
  path: string,
  message: string,
  remedy: string,
  value?: string,
): Problem => ({
  reason,
  message,
  path,
  remedy,
  ...(object === undefined ? {} : { object: describeObject(object) }),
  ...(value === undefined ? {} : { value }),
});

/** 2a: only kinds that a Kube-OVN chart is known to render, unless the cluster allows more. */
const knownKinds: Check = ({ objects, extraKinds }) =>
  objects
    .filter((object) => planeOf(object, extraKinds) === undefined)
    .map((object) =>
      problem(
        'UnexpectedKind',
        object,
        'kind',
        'a Kube-OVN chart is not known to render this kind',
        'check the chart; add the kind to spec.allow.extraKinds of cluster.yaml if it belongs there',
        groupKindOf(object),
      ),
    );

/** 2b: namespaced objects are in the namespace of the installation, cluster-scoped ones in none. */
const namespaces: Check = ({ objects, namespace }) =>
  objects.flatMap((object) => {
    if (isClusterScoped(object)) return [];
    if (object.namespace === namespace) return [];
    return [
      problem(
        'ForeignNamespace',
        object,
        'metadata.namespace',
        `the object is not in the namespace of the installation, ${namespace}`,
        'use a chart that honours its value namespace',
        object.namespace ?? '',
      ),
    ];
  });

/** 2c: no two objects of one identity. */
const duplicates: Check = ({ objects }) => {
  const seen = new Set<string>();
  return objects.flatMap((object) => {
    const id = objectId(object);
    if (!seen.has(id)) {
      seen.add(id);
      return [];
    }
    return [
      problem(
        'DuplicateObject',
        object,
        'metadata.name',
        'the chart renders this object twice',
        'use a chart without the duplicate',
      ),
    ];
  });
};

/** 3: no hook is left. */
const noHooks: Check = ({ objects }) =>
  objects
    .filter((object) => annotationsOf(object)['helm.sh/hook'] !== undefined)
    .map((object) =>
      problem(
        'HookLeft',
        object,
        'metadata.annotations["helm.sh/hook"]',
        'a hook passed the filter',
        'report this: hooks are filtered before this check',
      ),
    );

/** 6: replicas, NODE_IPS and OVN_DB_IPS agree with the ordered addresses; none of them is ever empty under RAFT. */
const raftAddresses: Check = ({ spec, objects, centralAddresses }) => {
  if (spec.mode === 'nodeNetworking' || spec.central.database !== 'raft') return [];
  const wanted = centralAddresses.join(',');
  const central = objects.find(isCentralWorkload);
  const remedy = 'check that the chart reads MASTER_NODES';
  if (central === undefined)
    return [problem('CentralMissing', undefined, 'spec.mode', 'the chart renders no ovn-central workload', remedy)];
  const replicas = member(central.body, 'spec').replicas;
  const problems: Problem[] = [];
  if (replicas !== spec.central.replicas || replicas !== centralAddresses.length)
    problems.push(
      problem(
        'CentralReplicas',
        central,
        'spec.replicas',
        `the chart renders ${String(replicas)} replicas for ${centralAddresses.length} addresses and ${spec.central.replicas} wanted`,
        remedy,
        String(replicas),
      ),
    );
  const nodeIPs = envValues(central, 'NODE_IPS');
  if (nodeIPs.length === 0 || nodeIPs.some((value) => value !== wanted || value === ''))
    problems.push(
      problem(
        'CentralAddresses',
        central,
        'env NODE_IPS',
        `NODE_IPS must be ${wanted}; an empty one would start a standalone database`,
        remedy,
        nodeIPs.join(' '),
      ),
    );
  for (const object of objects)
    for (const value of envValues(object, 'OVN_DB_IPS'))
      if (value !== wanted)
        problems.push(
          problem('CentralAddresses', object, 'env OVN_DB_IPS', `OVN_DB_IPS must be ${wanted}`, remedy, value),
        );
  return problems;
};

/** Modes: centralOnly has no data plane; nodeNetworking has no central. A chart that ignores the mode is found out here. */
const modeContents: Check = ({ spec, objects }) => {
  const remedy = 'use a chart that honours installMode';
  if (spec.mode === 'centralOnly')
    return objects
      .filter((object) => isDataPlaneWorkload(object) || planeOf(object) === 'definitions')
      .map((object) =>
        problem(
          'ModeIgnored',
          object,
          'spec.mode',
          'a centralOnly installation must not render the data plane',
          remedy,
        ),
      );
  if (spec.mode === 'nodeNetworking')
    return objects
      .filter(isCentral)
      .map((object) =>
        problem(
          'ModeIgnored',
          object,
          'spec.mode',
          'a nodeNetworking installation must not render OVN central',
          remedy,
        ),
      );
  return objects.some(isCentralWorkload) && objects.some((object) => object.kind === 'DaemonSet')
    ? []
    : [
        problem(
          'ModeIgnored',
          undefined,
          'spec.mode',
          'a full installation must render ovn-central and the node agents',
          remedy,
        ),
      ];
};

/** 7: a data plane without local central reaches exactly the endpoints of the specification, scheme included. */
const endpoints: Check = ({ spec, objects }) => {
  if (spec.mode !== 'nodeNetworking') return [];
  const external = externalEndpoints(spec);
  if (external === undefined) return [];
  const remedy = 'check the endpoints of the specification against the chart';
  const found = { OVN_NB_ADDR: 0, OVN_SB_ADDR: 0 };
  const problems: Problem[] = [];
  for (const object of objects) {
    for (const [name, endpoint] of [
      ['OVN_NB_ADDR', external.northbound],
      ['OVN_SB_ADDR', external.southbound],
    ] as const)
      for (const value of envValues(object, name)) {
        found[name]++;
        if (value !== formatEndpoint(endpoint))
          problems.push(
            problem(
              'EndpointMismatch',
              object,
              `env ${name}`,
              `the endpoint must be ${formatEndpoint(endpoint)}`,
              remedy,
              value,
            ),
          );
      }
    for (const value of envValues(object, 'OVN_DB_IPS'))
      problems.push(
        problem(
          'EndpointMismatch',
          object,
          'env OVN_DB_IPS',
          'a data plane with external endpoints must not name local databases',
          remedy,
          value,
        ),
      );
  }
  for (const [name, count] of Object.entries(found))
    if (count === 0)
      problems.push(problem('EndpointMismatch', undefined, `env ${name}`, 'no workload is given the endpoint', remedy));
  return problems;
};

/** Secrets are never rendered, and no reference to the chart's own TLS Secret is left where the specification names another. */
const secrets: Check = ({ spec, objects }) => {
  const named = tlsSecretName(spec);
  return objects.flatMap((object) => [
    ...(object.kind === 'Secret'
      ? [
          problem(
            'SecretRendered',
            object,
            'kind',
            'the chart renders a Secret; Secrets do not travel in Git',
            'create the Secret in the cluster and name it in the specification',
          ),
        ]
      : []),
    ...(named === chartTLSSecret
      ? []
      : chartTLSReferences(object).map((pointer) =>
          problem(
            'SecretReference',
            object,
            pointer,
            `the reference must name ${named}`,
            'report this: references are rewritten before this check',
            chartTLSSecret,
          ),
        )),
  ]);
};

/** 8: the node selector reached exactly the workloads of the data plane, and Linux is still selected. */
const selectorReach: Check = ({ spec, objects, touchedBySelector }) => {
  const selector = spec.dataPlane.nodeSelector;
  if (selector === undefined || Object.keys(selector).length === 0) return [];
  const wanted = objects
    .filter(isDataPlaneWorkload)
    .map((object) => `${object.kind}/${object.name}`)
    .sort();
  const problems = objects.filter(isDataPlaneWorkload).flatMap((object) => {
    const merged = stringMap(podSpecOf(object)?.nodeSelector);
    return Object.entries(selector).every(([key, value]) => merged[key] === value) &&
      (merged['kubernetes.io/os'] ?? 'linux') === 'linux'
      ? []
      : [
          problem(
            'NodeSelectorLost',
            object,
            'spec.template.spec.nodeSelector',
            'the node selector did not reach this workload',
            'report this',
          ),
        ];
  });
  if (wanted.join() !== touchedBySelector.join())
    problems.push(
      problem(
        'NodeSelectorLost',
        undefined,
        'spec.dataPlane.nodeSelector',
        `the selector reached ${touchedBySelector.join(', ')} instead of ${wanted.join(', ')}`,
        'report this',
      ),
    );
  return problems;
};

/** 10: the update strategy of ovs-ovn is the specification's, not one that the chart looked up. */
const updateStrategy: Check = ({ spec, objects }) =>
  objects
    .filter((object) => object.kind === 'DaemonSet' && object.name === 'ovs-ovn')
    .filter((object) => member(member(object.body, 'spec'), 'updateStrategy').type !== spec.dataPlane.ovsUpdateStrategy)
    .map((object) =>
      problem(
        'UpdateStrategy',
        object,
        'spec.updateStrategy.type',
        `the strategy must be ${spec.dataPlane.ovsUpdateStrategy}`,
        'check that the chart reads ovs-ovn.updateStrategy.type',
      ),
    );

/** 12: nothing that only the server writes. */
const serverFields: Check = ({ objects }) =>
  objects
    .filter(
      (object) => object.body.status !== undefined || items(member(object.body, 'metadata').managedFields).length > 0,
    )
    .map((object) =>
      problem(
        'ServerField',
        object,
        'status',
        'the chart renders a field that only the server writes',
        'use a chart without it',
      ),
    );

const checks: readonly Check[] = [
  knownKinds,
  namespaces,
  duplicates,
  noHooks,
  raftAddresses,
  modeContents,
  endpoints,
  secrets,
  selectorReach,
  updateStrategy,
  serverFields,
];

/** Every problem of every check. */
export const acceptChart = (input: AcceptanceInput): Problem[] => checks.flatMap((check) => check(input));
