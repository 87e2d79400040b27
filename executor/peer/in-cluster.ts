/** Looks at a pair whose halves are in one cluster. */
import { networkApiVersion } from '../../constructs/api/constants.ts';
import { installationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import { redact } from '../../constructs/lib/redact.ts';
import type { KubeClient } from '../kube/client.ts';
import { type KubeObject, type ObjectRef, uidOf } from '../kube/types.ts';
import { digestsOf, enforcedIn, isEnforced } from '../network/enforced.ts';
import { needsKeys, type PeerCertificate, type PeerEndpoint } from '../observe/hcp.ts';
import { generationOf, judgeKeys, keysOf, type PeerKeys } from './keys.ts';
import type { PeerHalf, PeerLook, PeerProvider, PeerRequest } from './provider.ts';

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

/**
 * An installation as a possible half; one whose specification can not be read is none. What it runs is what it was accepted
 * with: a change there that is blocked makes no pair, and ends none.
 */
function halfOf(object: KubeObject): PeerHalf[] {
  const read = installationSpec.safeParse(object.spec ?? {});
  const { namespace = '', name = '', deletionTimestamp } = object.metadata;
  if (!read.success || typeof deletionTimestamp === 'string') return [];
  const digests = digestsOf(object);
  const spec = enforcedIn(object, read.data, digests);
  const half = { namespace, name, uid: uidOf(object), spec };
  return [digests.applied === undefined || isEnforced(digests) ? half : { ...half, asked: read.data }];
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

const secretRef = (namespace: string, name: string): ObjectRef => ({
  apiVersion: 'v1',
  kind: 'Secret',
  namespace,
  name,
});

async function halvesIn(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<PeerHalf[] | { readonly message: string }> {
  const listed = await client.list(
    { apiVersion: networkApiVersion, kind: 'KubeOVNInstallation', namespace },
    { signal },
  );
  return listed.type === 'listed' ? listed.items.flatMap(halfOf) : { message: listed.message };
}

/** The default provider: the other half is an installation of this cluster that names this one in return. */
export function inClusterPeers({ client, clock, databases }: InClusterOptions): PeerProvider {
  return {
    async look(request, signal) {
      const { hcp, installation } = request;
      const peers = hcp.enabled ? await halvesIn(client, hcp.peerNamespace ?? '', signal) : [];
      if (!Array.isArray(peers)) return failed(`installations of the peer: ${peers.message}`);
      const found = needsKeys(hcp)
        ? await client.get(secretRef(installation.namespace, hcp.tlsSecretRef?.name ?? ''), { signal })
        : ({ type: 'absent' } as const);
      if (found.type !== 'found' && found.type !== 'absent') return failed(found.message);
      const secret = found.type === 'found' ? generationOf(found.object) : undefined;
      const keys = found.type === 'found' ? keysOf(found.object) : undefined;
      const certificate = judgeKeys(keys, clock.now());
      const endpoints = await endpointsOf(request, keys, certificate, databases, signal);
      return { type: 'seen', secret, certificate, peers, endpoints };
    },
  };
}
