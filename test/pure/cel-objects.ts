import { type JsonObject, type JsonValue, setAt } from '../../constructs/lib/json.ts';

/** A rule with an object that it accepts and one that it refuses. */
export interface CelCase {
  /** Message of the rule. */
  readonly rule: string;
  readonly accepted: JsonObject;
  readonly refused: JsonObject;
  /** For rules about changes: the object before. `status` rules start from its status. */
  readonly old?: JsonObject;
  /** The change goes through the status subresource. */
  readonly status?: boolean;
}

export const sha = (c: string): string => `sha256:${c.repeat(64)}`;
export const uuidOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

/** `base` with changes by JSON pointer; undefined removes a member. */
export const edit = (base: JsonObject, changes: Record<string, JsonValue | undefined>): JsonObject =>
  Object.entries(changes).reduce<JsonValue>((value, [at, next]) => setAt(value, at, next), base) as JsonObject;

export const installation: JsonObject = {
  apiVersion: 'network.keelson.dev/v1alpha1',
  kind: 'KubeOVNInstallation',
  metadata: { name: 'prod', namespace: 'kube-system' },
  spec: {
    mode: 'full',
    version: 'v1.16.2',
    chart: { source: 'https://charts.example.org/kube-ovn-v1.16.2.tgz', digest: sha('a') },
  },
};

export const approval: JsonObject = {
  apiVersion: 'network.keelson.dev/v1alpha1',
  kind: 'KubeOVNMemberRemovalApproval',
  metadata: { name: 'lost-node-3', namespace: 'kube-system' },
  spec: {
    installationRef: { name: 'prod', uid: uuidOf(1) },
    operationID: uuidOf(2),
    databases: [
      { name: 'OVN_Northbound', clusterID: uuidOf(3), serverID: uuidOf(4), address: 'tcp:10.0.0.3:6643' },
      { name: 'OVN_Southbound', clusterID: uuidOf(5), serverID: uuidOf(6), address: 'tcp:10.0.0.3:6644' },
    ],
    reason: 'the disk of node-3 is gone',
    expiresAt: '2030-01-01T00:00:00Z',
  },
};

export const recovery: JsonObject = {
  apiVersion: 'network.keelson.dev/v1alpha1',
  kind: 'KubeOVNRecoveryRequest',
  metadata: { name: 'recover-1', namespace: 'kube-system' },
  spec: {
    installationRef: { name: 'prod' },
    mode: 'rejoin',
    targetMemberName: 'ovn-central-4',
    reason: 'its disk was replaced',
    expiresAt: '2030-01-01T00:00:00Z',
  },
};

export const release: JsonObject = {
  apiVersion: 'keelson.dev/v1alpha1',
  kind: 'Release',
  metadata: { name: 'manifests-demo', namespace: 'keelson-system' },
  spec: { payload: { digest: sha('d') }, source: { configMaps: {} } },
};

export const addressClass: JsonObject = {
  apiVersion: 'local.sdn.cozystack.io/v1alpha1',
  kind: 'IPAddressClass',
  metadata: { name: 'public' },
  spec: {
    provisioner: 'metallb.drivers.local.sdn.cozystack.io',
    parameters: { addresses: ['203.0.113.0/29', '2001:db8::/126'] },
  },
};

export const address: JsonObject = {
  apiVersion: 'local.sdn.cozystack.io/v1alpha1',
  kind: 'IPAddress',
  metadata: { name: 'ip-203-0-113-7' },
  spec: { className: 'public', address: '203.0.113.7', source: { fromClass: {} } },
};

export const claim: JsonObject = {
  apiVersion: 'local.sdn.cozystack.io/v1alpha1',
  kind: 'IPAddressClaim',
  metadata: { name: 'web', namespace: 'tenant-a' },
  spec: { className: 'public', addressName: 'ip-203-0-113-7' },
};
