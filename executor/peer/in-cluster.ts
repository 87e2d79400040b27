/** Looks at a pair whose halves are in one cluster. */
import { networkApiVersion } from '../../constructs/api/constants.ts';
import { installationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import { redact } from '../../constructs/lib/redact.ts';
import type { KubeClient } from '../kube/client.ts';
import { type KubeObject, uidOf } from '../kube/types.ts';
import type { PeerCertificate, PeerEndpoint, PeerInstallation } from '../observe/hcp.ts';
import { generationOf, judgeKeys, keysOf, type PeerKeys } from './keys.ts';
import type { PeerLook, PeerProvider, PeerRequest } from './provider.ts';

/** Asks a server of OVSDB which databases it serves; with the keys where the endpoint is `ssl:`. */
export type ListDatabases = (
  endpoint: string,
  keys: PeerKeys | undefined,
  signal: AbortSignal,
) => Promise<PeerEndpoint['result']>;

export interface InClusterOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly databases: ListDatabases;
}

const failed = (message: string): PeerLook => ({ type: 'failed', message: redact(message) });

/** An installation as a possible half; one whose specification can not be read is none. */
function halfOf(object: KubeObject): PeerInstallation[] {
  const read = installationSpec.safeParse(object.spec ?? {});
  const { namespace = '', name = '', deletionTimestamp } = object.metadata;
  if (!read.success || typeof deletionTimestamp === 'string') return [];
  return [{ namespace, name, uid: uidOf(object), spec: read.data }];
}

async function endpointsOf(
  { hcp }: PeerRequest,
  keys: PeerKeys | undefined,
  certificate: PeerCertificate,
  databases: ListDatabases,
  signal: AbortSignal,
): Promise<PeerEndpoint[]> {
  const wanted = [hcp.northbound, hcp.southbound].filter((endpoint) => endpoint !== undefined);
  return Promise.all(
    wanted.map(async (endpoint): Promise<PeerEndpoint> => {
      const secured = endpoint.startsWith('ssl:');
      // What can not be used is not shown to anybody.
      if (secured && (keys === undefined || certificate.type !== 'valid'))
        return { endpoint, result: { type: 'unreachable', message: 'it was not asked, for want of usable keys' } };
      return { endpoint, result: await databases(endpoint, secured ? keys : undefined, signal) };
    }),
  );
}

/** The default provider: the other half is an installation of this cluster that names this one in return. */
export function inClusterPeers({ client, clock, databases }: InClusterOptions): PeerProvider {
  return {
    async look(request, signal) {
      const { namespace } = request.installation;
      const name = request.hcp.tlsSecretRef?.name ?? '';
      const listed = await client.list(
        { apiVersion: networkApiVersion, kind: 'KubeOVNInstallation', namespace: request.hcp.peerNamespace ?? '' },
        { signal },
      );
      if (listed.type !== 'listed') return failed(`installations of the peer: ${listed.message}`);
      const found = await client.get({ apiVersion: 'v1', kind: 'Secret', namespace, name }, { signal });
      if (found.type !== 'found' && found.type !== 'absent') return failed(found.message);
      const secret = found.type === 'found' ? generationOf(found.object) : undefined;
      const keys = found.type === 'found' ? keysOf(found.object) : undefined;
      const certificate = judgeKeys(keys, clock.now());
      return {
        type: 'seen',
        secret,
        certificate,
        peers: listed.items.flatMap(halfOf),
        endpoints: await endpointsOf(request, keys, certificate, databases, signal),
      };
    },
  };
}
