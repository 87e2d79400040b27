import type { Construct } from 'constructs';
import { addressesNodeOptions } from '../../api/addresses.ts';
import { type AddressesSettings, addressesOf } from '../../api/addresses-settings.ts';
import type { ClusterSpec } from '../../api/cluster.ts';
import { roleName } from '../../api/constants.ts';
import type { JsonObject } from '../../lib/json.ts';
import { plainContainer, plainPod } from '../executor.ts';
import { ManifestObject } from '../manifest.ts';
import { ownLabels } from '../system.ts';

export interface AddressesOptions {
  readonly spec: Pick<ClusterSpec, 'executor' | 'addresses'>;
  /** Reference with a digest. */
  readonly image: string;
  readonly pullSecrets: readonly string[];
}

const driverArgs = ({ metallb }: AddressesSettings): string[] => [
  `--metallb-namespace=${metallb.namespace}`,
  `--placeholder-namespace=${metallb.placeholderNamespace}`,
  ...(metallb.loadBalancerClass === undefined ? [] : [`--lb-class=${metallb.loadBalancerClass}`]),
  `--forced-release=${metallb.forcedRelease}`,
];

function container({ spec, image }: AddressesOptions): JsonObject {
  const settings = addressesOf(spec);
  const { apiServer, namespace } = spec.executor;
  return {
    name: 'addresses',
    image,
    args: [
      ...['executor', '--role=addresses', `--namespace=${namespace}`, `--workers=${settings.workers.join(',')}`],
      ...(settings.leaseNamespace === undefined ? [] : [`--lease-namespace=${settings.leaseNamespace}`]),
      ...(apiServer === undefined ? [] : [`--api-server=${apiServer}`]),
      ...(settings.workers.includes('driver') ? driverArgs(settings) : []),
    ],
    env: [
      { name: 'POD_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } },
      { name: 'NODE_OPTIONS', value: addressesNodeOptions },
    ],
    // 10,000 addresses with their Services take some 180 MiB.
    resources: { requests: { cpu: '20m', memory: '128Mi' }, limits: { memory: '256Mi' } },
    ...plainContainer(),
  };
}

/**
 * The Deployment of role `addresses`. Unlike the executor it brings nothing that a network needs: it is an ordinary pod of the
 * cluster, and its metrics, on the loopback address, meet nobody else's.
 */
export function addressesDeployment(scope: Construct, options: AddressesOptions): ManifestObject {
  const { executor } = options.spec;
  const name = roleName('addresses');
  const selected = { 'app.kubernetes.io/name': name };
  const labels = { ...selected, ...ownLabels };
  return new ManifestObject(scope, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: executor.namespace, labels },
    spec: {
      replicas: executor.replicas,
      revisionHistoryLimit: 3,
      selector: { matchLabels: selected },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: name,
          terminationGracePeriodSeconds: 30,
          nodeSelector: { 'kubernetes.io/os': 'linux', ...executor.nodeSelector },
          tolerations: [{ operator: 'Exists', effect: 'NoSchedule' }],
          affinity: {
            podAntiAffinity: {
              preferredDuringSchedulingIgnoredDuringExecution: [
                {
                  weight: 100,
                  podAffinityTerm: {
                    topologyKey: 'kubernetes.io/hostname',
                    labelSelector: { matchLabels: selected },
                  },
                },
              ],
            },
          },
          ...plainPod(options.pullSecrets),
          containers: [container(options)],
        },
      },
    },
  });
}
