/** One look at the other half of a pair, bound to one generation of the Secret. */
import { type Clock, rest } from '../../constructs/lib/clock.ts';
import type { KubeClient } from '../kube/client.ts';
import { type KubeObject, uidOf } from '../kube/types.ts';
import { readInstallation } from '../network/snapshot.ts';
import { lookedAt, needsKeys, type PeerObservation, type SecretGeneration } from '../observe/hcp.ts';
import { generationOf } from './keys.ts';
import type { PeerLook, PeerProvider, PeerRequest } from './provider.ts';

type Generation =
  | { readonly type: 'known'; readonly secret: SecretGeneration | undefined }
  | { readonly type: 'unread'; readonly message: string };

async function generation(
  client: KubeClient,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<Generation> {
  const found = await client.get({ apiVersion: 'v1', kind: 'Secret', namespace, name }, { signal });
  if (found.type === 'absent') return { type: 'known', secret: undefined };
  if (found.type !== 'found') return { type: 'unread', message: found.message };
  return { type: 'known', secret: generationOf(found.object) };
}

const same = (a: SecretGeneration | undefined, b: SecretGeneration | undefined): boolean =>
  a?.uid === b?.uid && a?.resourceVersion === b?.resourceVersion && a?.name === b?.name;

/** Time for one look; milliseconds. A provider that hangs is given up, and then nothing is known. */
const lookMs = 20_000;

const failed = (message: string): PeerLook => ({ type: 'failed', message });

/** Asks a provider within the limit, whether it listens to signals or not. */
async function within(
  clock: Clock,
  provider: PeerProvider,
  request: PeerRequest,
  signal: AbortSignal,
): Promise<PeerLook> {
  const [over, done] = [new AbortController(), new AbortController()];
  const late = rest(clock, lookMs, AbortSignal.any([signal, done.signal])).then(() => failed('the look took too long'));
  // What a provider throws may hold anything.
  const asked = async (): Promise<PeerLook> => provider.look(request, AbortSignal.any([signal, over.signal]));
  const look = asked().catch(() => failed('the provider failed'));
  const first = await Promise.race([look, late]);
  over.abort();
  done.abort();
  signal.throwIfAborted();
  return first;
}

/** Observes; an installation whose databases are its own has nothing to be observed. */
export async function observePeer(
  installation: KubeObject,
  provider: PeerProvider,
  { client, clock }: { readonly client: KubeClient; readonly clock: Clock },
  signal: AbortSignal,
): Promise<PeerObservation> {
  const spec = readInstallation(installation).installation?.spec;
  const hcp = spec === undefined ? undefined : lookedAt(spec);
  if (spec === undefined || hcp === undefined) return { type: 'pending' };
  const { version } = spec;
  const { namespace = '', name = '' } = installation.metadata;
  const secretName = hcp.tlsSecretRef?.name ?? '';
  const none: Generation = { type: 'known', secret: undefined };
  const current = (): Promise<Generation> =>
    needsKeys(hcp) ? generation(client, namespace, secretName, signal) : Promise.resolve(none);
  const before = await current();
  if (before.type === 'unread') return { type: 'failed', message: before.message };
  const request = { installation: { namespace, name, uid: uidOf(installation) }, version, hcp, secret: before.secret };
  const look = await within(clock, provider, request, signal);
  if (look.type === 'failed') return { type: 'failed', message: look.message };
  const after = await current();
  if (after.type === 'unread') return { type: 'failed', message: after.message };
  const { certificate, peers, endpoints } = look;
  // A provider that looked with another generation has seen something else, even if the Secret is back meanwhile.
  const secretAfter = same(look.secret, before.secret) ? after.secret : look.secret;
  return { type: 'observed', report: { secretBefore: before.secret, secretAfter, certificate, peers, endpoints } };
}
