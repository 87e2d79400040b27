/**
 * Payloads out of artifacts of Flux. An artifact is transport and nothing more: its digest is checked, then it is unpacked
 * with suspicion, and what is in it is believed only after our own index, and later our own signature, have been checked.
 */
import { encodePayload, readIndex, verifyFiles } from '../../constructs/api/payload-codec.ts';
import { type BackoffPolicy, backoff } from '../../constructs/lib/backoff.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import { isObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { readTarGz, UnsafeArchive } from '../../constructs/lib/tar.ts';
import type { KubeClient } from '../kube/client.ts';
import { type DownloadTimings, download } from './download.ts';
import {
  type Artifact,
  describeSource,
  type FluxSourceRef,
  judgeSource,
  serviceOfHost,
  sourceObject,
} from './flux-artifact.ts';
import type { Fetched, SourceRevision } from './source.ts';

export interface FluxOptions {
  /** Namespaces whose sources may be read; none by default. */
  readonly namespaces: readonly string[];
  readonly maxBytes: number;
  readonly timings: DownloadTimings;
  /** How often one artifact is tried before the worker's own pauses, and the pauses in between. */
  readonly attempts: number;
  readonly pause: BackoffPolicy;
}

const mebibyte = 1024 * 1024;

export const defaultFluxOptions: FluxOptions = {
  namespaces: [],
  maxBytes: 32 * mebibyte,
  timings: { connectMs: 5_000, silenceMs: 15_000, totalMs: 60_000 },
  attempts: 3,
  pause: { initialMs: 500, factor: 3, maxMs: 5_000, jitter: 0.2 },
};

/** A whole repository may be in an artifact, of which one folder is a payload. */
const unpackLimits = {
  maxFiles: 20_000,
  maxFileBytes: 16 * mebibyte,
  maxTotalBytes: 256 * mebibyte,
  maxRatio: 200,
};

export interface FluxDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly options: FluxOptions;
}

export interface FluxWanted {
  readonly digest: string;
  readonly ref: FluxSourceRef;
}

export interface FluxSource {
  /** Reads the source uncached and its artifact. `told` hears of the revision before anything of it is fetched. */
  fetch(wanted: FluxWanted, signal: AbortSignal, told: (revision: SourceRevision) => void): Promise<Fetched>;
}

type NotFetched = Exclude<Fetched, { type: 'archive' }>;

/** An artifact that was not there any more when it was asked for. */
interface Gone {
  readonly gone: Problem;
}

const broken = (problem: Problem): NotFetched => ({ type: 'broken', problems: [problem] });

/** Why a source may not be read at all, whatever it holds. */
function refusal({ ref }: FluxWanted, { namespaces }: FluxOptions): Problem | undefined {
  if (!namespaces.includes(ref.namespace))
    return {
      reason: 'SourceNotAllowed',
      object: describeSource(ref),
      message: `this executor reads no sources of namespace ${ref.namespace}${namespaces.length > 0 ? `; allowed: ${namespaces.join(', ')}` : ''}`,
      path: 'spec.source.flux.namespace',
      remedy: 'name the release in spec.delivery.flux.artifactFor of cluster.yaml, publish, and deliver unit 10-system',
    };
  if (!ref.path.split('/').some((part) => part === '' || part === '.' || part === '..')) return undefined;
  return {
    reason: 'InvalidSpec',
    object: describeSource(ref),
    message: 'the path holds an empty, . or .. segment',
    path: 'spec.source.flux.path',
    remedy: 'write the folder below the root of the artifact',
  };
}

/** The artifact that a source offers now; read uncached. */
async function offered(
  client: KubeClient,
  ref: FluxSourceRef,
  signal: AbortSignal,
): Promise<NotFetched | { readonly artifact: Artifact }> {
  const got = await client.get(sourceObject(ref), { signal });
  if (got.type !== 'found' && got.type !== 'absent' && got.type !== 'kindAbsent')
    return { type: 'unavailable', problem: { reason: 'ApiUnavailable', message: got.message } };
  const verdict = judgeSource(ref, got.type === 'found' ? got.object : undefined);
  switch (verdict.type) {
    case 'ready':
      return verdict;
    case 'wait':
      return { type: 'incomplete', problem: verdict.problem };
    case 'refused':
      return broken(verdict.problem);
  }
}

/** A source for one Release. What was found in an artifact is remembered: the same bytes are not fetched again. */
export function fluxSource(deps: FluxDeps): FluxSource {
  let last: { readonly key: string; readonly found: Fetched } | undefined;

  async function attempt(
    wanted: FluxWanted,
    signal: AbortSignal,
    told: (revision: SourceRevision) => void,
    before?: { readonly key: string; readonly gone: Problem },
  ): Promise<Fetched> {
    const offer = await offered(deps.client, wanted.ref, signal);
    if (!('artifact' in offer)) return offer;
    const { artifact } = offer;
    const key = JSON.stringify([artifact, wanted]);
    if (last?.key === key) return last.found;
    if (before?.key === key) return { type: 'unavailable', problem: before.gone };
    told(revisionOf(artifact));
    const bytes = await fetchBytes(deps, wanted.ref, artifact, signal);
    // The source may have moved on between the look and the request: it is read once more, and then it is a failure.
    if ('gone' in bytes)
      return before === undefined
        ? attempt(wanted, signal, told, { key, gone: bytes.gone })
        : { type: 'unavailable', problem: bytes.gone };
    if (!(bytes instanceof Uint8Array)) return bytes;
    const found = await unpack(wanted, artifact, bytes);
    // A payload at hand goes into the retained copies; it need not be kept here.
    last = found.type === 'archive' ? undefined : { key, found };
    return found;
  }

  return {
    async fetch(wanted, signal, told) {
      const refused = refusal(wanted, deps.options);
      return refused === undefined ? attempt(wanted, signal, told) : broken(refused);
    },
  };
}

const revisionOf = ({ revision, originRevision }: Artifact): SourceRevision => ({
  revision,
  ...(originRevision === undefined ? {} : { originRevision }),
});

/** The artifact's bytes, with the digest that its source states. */
async function fetchBytes(
  deps: FluxDeps,
  ref: FluxSourceRef,
  artifact: Artifact,
  signal: AbortSignal,
): Promise<Uint8Array | NotFetched | Gone> {
  const { options, clock, random } = deps;
  const about = (reason: string, message: string): Problem => ({
    reason,
    object: describeSource(ref),
    message: `${message} (${artifact.url.href.slice(0, 300)}, revision ${artifact.revision})`,
  });
  if (artifact.size !== undefined && artifact.size > options.maxBytes)
    return broken(
      about('ArtifactTooLarge', `the source states ${artifact.size} bytes, allowed are ${options.maxBytes}`),
    );
  const address = await addressOf(deps, artifact.url.hostname, signal);
  if ('problem' in address) return { type: 'unavailable', problem: address.problem };
  for (let attempt = 1; ; attempt++) {
    const { url, algorithm } = artifact;
    const { maxBytes, timings } = options;
    const got = await download({ url, algorithm, maxBytes, timings, ...address, signal });
    switch (got.type) {
      case 'bytes':
        if (got.hex === artifact.hex) return got.bytes;
        return broken(
          about(
            'ArtifactDigestMismatch',
            `the bytes have ${algorithm}:${got.hex}, the source states ${algorithm}:${artifact.hex}`,
          ),
        );
      case 'gone':
        return { gone: about('ArtifactGone', got.message) };
      case 'tooLarge':
        return broken(about('ArtifactTooLarge', got.message));
      case 'refused':
        return broken(about('ArtifactRefused', got.message));
      case 'failed':
        if (attempt >= options.attempts)
          return {
            type: 'unavailable',
            problem: about('ArtifactUnavailable', `${got.message}; tried ${attempt} times`),
          };
        await clock.sleep(backoff(options.pause, attempt - 1, random), signal);
    }
  }
}

/**
 * The cluster address behind a Service's name. The executor is on the host's network and asks no cluster DNS, because it must
 * work without one; the API server knows the address as well.
 */
async function addressOf(
  { client }: FluxDeps,
  host: string,
  signal: AbortSignal,
): Promise<{ readonly address?: string } | { readonly problem: Problem }> {
  const service = serviceOfHost(host.replace(/\.$/, ''));
  if (service === undefined) return {};
  const got = await client.get({ apiVersion: 'v1', kind: 'Service', ...service }, { signal });
  const what = `Service ${service.namespace}/${service.name}`;
  const spec = got.type === 'found' && isObject(got.object.spec) ? got.object.spec : {};
  if (typeof spec.clusterIP === 'string' && /^[0-9a-f.:]+$/.test(spec.clusterIP)) return { address: spec.clusterIP };
  const why = got.type === 'found' ? 'it has no cluster address' : 'message' in got ? got.message : 'it does not exist';
  return { problem: { reason: 'ArtifactUnavailable', object: what, message: why } };
}

/** The payload below the wanted folder of an artifact whose bytes are what its source says. */
async function unpack({ digest, ref }: FluxWanted, artifact: Artifact, bytes: Uint8Array): Promise<Fetched> {
  const what = describeSource(ref);
  const folder = `${ref.path}/`;
  let files: Map<string, Uint8Array>;
  try {
    const read = await readTarGz(bytes, unpackLimits, (path) => path.startsWith(folder));
    files = new Map(read.map((file) => [file.path.slice(folder.length), file.bytes]));
  } catch (error) {
    if (!(error instanceof UnsafeArchive)) throw error;
    return broken({ reason: 'ArtifactUnsafe', object: what, message: error.message });
  }
  const skew = (message: string): Fetched => ({
    type: 'incomplete',
    problem: { reason: 'ArtifactSkew', object: what, message },
  });
  if (!files.has('index.json')) return skew(`revision ${artifact.revision} holds no payload below ${ref.path}`);
  const index = readIndex(files.get('index.json'));
  if (!index.ok) return { type: 'broken', problems: index.problems };
  if (index.value.digest !== digest)
    return skew(`revision ${artifact.revision} holds payload ${index.value.digest}, the Release names ${digest}`);
  const payload = verifyFiles(files, 'tree');
  if (!payload.ok) return { type: 'broken', problems: payload.problems };
  return { type: 'archive', archive: await encodePayload(payload.value), ...revisionOf(artifact) };
}
