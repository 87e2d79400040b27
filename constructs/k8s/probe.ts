import { evidenceMount, evidenceTrust, probeContainers, probeVolumes as volumes } from '../api/constants.ts';
import { evidenceAudience } from '../api/evidence/identity.ts';
import type { JsonObject } from '../lib/json.ts';

/**
 * The sidecars that tell the executor what the daemons beside them say. Each declares no ports and no probes, so that it neither
 * takes a port from the scheduler nor makes its pod unready; and it has no account at the API server: over the usual
 * place of the token lies an empty volume, and its own token is good for nothing but to prove which pod it is.
 */

export interface SidecarOptions {
  readonly kind: 'central' | 'chassis' | 'drain';
  readonly image: string;
  /** Mounts of the daemons' own folders, as their container has them. */
  readonly folders: readonly JsonObject[];
  /** Account of the daemons: their sockets are theirs alone. */
  readonly runAsUser?: number;
}

const usualToken = '/var/run/secrets/kubernetes.io/serviceaccount';
const tokenSeconds = 3_600;

/**
 * None, but for a root of whom sockets may be taken: charts give the folders of the daemons to another account each time that
 * one of their pods starts, and root without this right is nobody there.
 */
const capabilitiesOf = (runAsUser: number | undefined): JsonObject => ({
  drop: ['ALL'],
  ...(runAsUser === 0 ? { add: ['DAC_OVERRIDE'] } : {}),
});

const fieldVariable = (name: string, fieldPath: string): JsonObject => ({
  name,
  valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } },
});

/** Who the pod is, as a probe reads it. */
export const podIdentity = (): JsonObject[] => [
  fieldVariable('POD_NAMESPACE', 'metadata.namespace'),
  fieldVariable('POD_NAME', 'metadata.name'),
  fieldVariable('POD_UID', 'metadata.uid'),
  fieldVariable('NODE_NAME', 'spec.nodeName'),
  fieldVariable('POD_IPS', 'status.podIPs'),
];

/** The token by which a probe proves its pod, and whom it believes. */
export const evidenceVolumes = (): JsonObject[] => [
  {
    name: volumes.evidence,
    projected: {
      sources: [
        { serviceAccountToken: { audience: evidenceAudience, expirationSeconds: tokenSeconds, path: 'token' } },
        // The executor writes it; a pod that starts before waits for nobody.
        {
          configMap: {
            name: evidenceTrust.name,
            items: [{ key: evidenceTrust.key, path: evidenceTrust.key }],
            optional: true,
          },
        },
      ],
    },
  },
];

export const evidenceMounts = (): JsonObject[] => [
  { name: volumes.evidence, mountPath: evidenceMount, readOnly: true },
];

/** The container. Its volumes are {@link sidecarVolumes}, once for all sidecars of a pod. */
export const evidenceSidecar = ({ kind, image, folders, runAsUser }: SidecarOptions): JsonObject => ({
  name: probeContainers[kind],
  image,
  args: ['probe', kind],
  env: podIdentity(),
  resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '128Mi' } },
  securityContext: {
    ...(runAsUser === undefined ? {} : { runAsUser }),
    privileged: false,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: capabilitiesOf(runAsUser),
  },
  terminationMessagePolicy: 'FallbackToLogsOnError',
  volumeMounts: [
    ...folders.map((mount) => ({ ...mount, readOnly: true })),
    ...evidenceMounts(),
    { name: volumes.noToken, mountPath: usualToken, readOnly: true },
  ],
});

export const sidecarVolumes = (): JsonObject[] => [...evidenceVolumes(), { name: volumes.noToken, emptyDir: {} }];
