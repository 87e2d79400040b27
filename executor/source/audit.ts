/** Whether the cluster holds of a release what a rendered tree says: inbox, retained copies, Release and trusted keys. */
import { annotations, apiVersion } from '../../constructs/api/constants.ts';
import { decodePayload, type Payload } from '../../constructs/api/payload-codec.ts';
import type { ReleaseSpec, ReleaseStatus } from '../../constructs/api/release.ts';
import { type TrustSet, verifySignature } from '../../constructs/api/signature.ts';
import { deepEqual, type JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import { assemble, type ChunksRead, readChunks } from './chunks.ts';
import { readTrustSecret } from './trust.ts';

export interface AuditInput {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly signal: AbortSignal;
}

/** What the cluster says of a release. */
export interface AuditedRelease {
  readonly release: string;
  /** Payload that its Release asks for, and the one that is enforced. */
  readonly wanted?: string;
  readonly actual?: string;
  /** Digests of the payloads that are retained whole. */
  readonly retained: readonly string[];
}

const deliver = 'run keelson deliver, or look why the courier does not';

/** Looks at every release; nothing is written. Everything that does not fit is a problem. */
export async function auditReleases(
  input: AuditInput,
  expected: ReadonlyMap<string, Payload>,
): Promise<{ readonly releases: AuditedRelease[]; readonly problems: Problem[] }> {
  const read = await readTrustSecret(input.client, input.namespace, input.signal);
  if (read.type === 'unavailable') return { releases: [], problems: [read.problem] };
  const problems: Problem[] = [...read.problems];
  const releases: AuditedRelease[] = [];
  for (const [release, payload] of expected) {
    const found = await auditRelease(input, release, payload, read.trust);
    releases.push(found.audited);
    problems.push(...found.problems);
  }
  return { releases, problems };
}

async function auditRelease(
  input: AuditInput,
  release: string,
  payload: Payload,
  trust: TrustSet,
): Promise<{ readonly audited: AuditedRelease; readonly problems: Problem[] }> {
  const object = `Release ${input.namespace}/${release}`;
  const live = await readRelease(input, release, payload.index.digest, object);
  const problems = [...live.problems];
  const { digest, signature } = payload.index;
  const verdict = verifySignature(digest, signature, trust);
  if (verdict.kind !== 'valid')
    problems.push({
      reason: 'SignatureUntrusted',
      message: `the cluster trusts ${[...trust.keys()].sort().join(', ') || 'no key'}, and the payload is ${verdict.kind === 'unsigned' ? 'unsigned' : `signed by ${verdict.keyId}`}`,
      object,
      remedy: 'trust that key with keelson bootstrap --trust, or publish with one that is trusted',
    });
  const chunks = (holds: 'payload' | 'retained'): Promise<ChunksRead> =>
    readChunks(input.client, { namespace: input.namespace, release, holds }, input.signal);
  if (live.fromConfigMaps) problems.push(...(await inboxProblems(await chunks('payload'), payload, object)));
  const retained = await auditRetained(await chunks('retained'), live.actual, object);
  return {
    audited: {
      release,
      ...(live.wanted === undefined ? {} : { wanted: live.wanted }),
      ...(live.actual === undefined ? {} : { actual: live.actual }),
      retained: retained.whole,
    },
    problems: [...problems, ...retained.problems],
  };
}

interface LiveRelease {
  readonly wanted?: string;
  readonly actual?: string;
  readonly fromConfigMaps: boolean;
  readonly problems: readonly Problem[];
}

async function readRelease(
  { client, namespace, signal }: AuditInput,
  name: string,
  digest: string,
  object: string,
): Promise<LiveRelease> {
  const got = await client.get({ apiVersion, kind: 'Release', namespace, name }, { signal });
  const say = (reason: string, message: string, remedy: string): LiveRelease => ({
    fromConfigMaps: true,
    problems: [{ reason, message, object, remedy }],
  });
  if (got.type !== 'found') {
    const absent = got.type === 'absent' || got.type === 'kindAbsent' || got.type === 'namespaceMissing';
    return absent
      ? say('ReleaseMissing', 'it is not in the cluster', deliver)
      : say('ReadFailed', got.message, 'try again');
  }
  const spec = got.object.spec as unknown as ReleaseSpec;
  const status = (got.object.status ?? {}) as unknown as NonNullable<ReleaseStatus>;
  const wanted = spec.payload.digest;
  const { actual } = status;
  const problems: Problem[] = [];
  if (wanted !== digest)
    problems.push({
      reason: 'PayloadMissing',
      message: `it asks for payload ${wanted}, the tree holds ${digest}`,
      object,
      remedy: deliver,
    });
  if (actual !== digest)
    problems.push({
      reason: 'NotEnforced',
      message: `${actual === undefined ? 'no payload is' : `payload ${actual} is`} enforced, the tree holds ${digest}`,
      object,
      remedy: `look at keelson status ${name}`,
    });
  return {
    wanted,
    ...(actual === undefined ? {} : { actual }),
    fromConfigMaps: spec.source?.configMaps !== undefined,
    problems,
  };
}

async function inboxProblems(chunks: ChunksRead, { index }: Payload, object: string): Promise<Problem[]> {
  const at = (problem: Problem): Problem => ({
    ...problem,
    object,
    message: `inbox: ${problem.message}`,
    remedy: deliver,
  });
  const got = assemble(index.digest, chunks);
  if (got.type !== 'archive') return ('problems' in got ? got.problems : [got.problem]).map(at);
  const decoded = await decodePayload(got.archive);
  if (!decoded.ok) return decoded.problems.map(at);
  const same = deepEqual(decoded.value.index as unknown as JsonObject, index as unknown as JsonObject);
  if (same) return [];
  return [
    at({
      reason: 'PayloadIntegrity',
      message: 'it holds the payload with another signature or provenance than the tree',
    }),
  ];
}

/** Every retained copy is whole, and the enforced payload is among them. */
async function auditRetained(
  chunks: ChunksRead,
  actual: string | undefined,
  object: string,
): Promise<{ readonly whole: string[]; readonly problems: Problem[] }> {
  if (chunks.type === 'unavailable') return { whole: [], problems: [{ ...chunks.problem, object }] };
  const digests = new Set(chunks.configMaps.map(({ metadata }) => metadata.annotations?.[annotations.payload] ?? ''));
  if (actual !== undefined) digests.add(actual);
  const whole: string[] = [];
  const problems: Problem[] = [];
  for (const digest of [...digests].sort()) {
    const got = assemble(digest, chunks);
    const decoded = got.type === 'archive' ? await decodePayload(got.archive) : undefined;
    const holds = decoded?.ok === true ? decoded.value.index.digest : undefined;
    if (holds === digest) whole.push(digest);
    else
      problems.push({
        reason: 'RetainedCopyDamaged',
        message: `the retained copy of payload ${digest} ${holds === undefined ? 'is not whole' : `holds payload ${holds}`}`,
        object,
        remedy: 'deliver that payload again; the executor makes its copy anew when it starts',
      });
  }
  return { whole, problems };
}
