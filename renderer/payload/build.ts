import { annotations, labels, limits, managedByValue } from '../../constructs/api/constants.ts';
import {
  manifestDigest,
  type PayloadContent,
  type PayloadObject,
  type PayloadPhase,
  type Provenance,
  payloadContent,
  payloadDigest,
} from '../../constructs/api/payload.ts';
import { objectFile, objectSha256 } from '../../constructs/api/payload-codec.ts';
import { isObject, type JsonObject, sortedCopy } from '../../constructs/lib/json.ts';
import {
  boundedName,
  describeObject,
  identityOf,
  manifestFileName,
  type ObjectIdentity,
  objectId,
} from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { DomainRelease, ReleaseObject, ReleasePhase } from '../domain.ts';
import { compareObjects } from './order.ts';

/** What all payloads of one render share. */
export interface PayloadContext {
  readonly cluster: string;
  readonly clusterUID?: string;
  readonly keelson: string;
  readonly specCommit?: string;
  readonly inputs: Omit<Provenance['inputs'], 'charts'>;
}

/** A payload without its signature. */
export interface BuiltPayload {
  readonly release: string;
  readonly digest: string;
  readonly content: PayloadContent;
  readonly provenance: Provenance;
  /** Objects by id, as the index lists them. */
  readonly objects: ReadonlyMap<string, JsonObject>;
}

/** Longest file name that every file system takes. */
const maxFileName = 240;

const strings = (value: unknown): JsonObject => (isObject(value) ? value : {});

/** The object with the marks by which the executor, and a person, tell what it belongs to. */
function decorate(object: JsonObject, release: string, phase: string): JsonObject {
  const metadata = isObject(object.metadata) ? object.metadata : {};
  return sortedCopy({
    ...object,
    metadata: {
      ...metadata,
      labels: {
        ...strings(metadata.labels),
        [labels.managedBy]: managedByValue,
        [labels.release]: release,
        [labels.phase]: phase,
      },
      annotations: { ...strings(metadata.annotations), [annotations.id]: objectId(identityOf(object)) },
    },
  });
}

function fileName(identity: ObjectIdentity): string {
  const name = manifestFileName(identity);
  return name.length <= maxFileName ? name : `${boundedName([name.slice(0, -'.yaml'.length)], maxFileName - 5)}.yaml`;
}

interface Numbering {
  next: number;
}

function toPhase(
  phase: ReleasePhase,
  release: string,
  numbering: Numbering,
  objects: Map<string, JsonObject>,
): PayloadPhase {
  const found = phase.objects.map((source) => ({ source, identity: identityOf(source.object) }));
  found.sort((a, b) => compareObjects(a.identity, b.identity));
  return {
    name: phase.name,
    dir: phase.dir,
    gates: [...phase.gates],
    objects: found.map(({ source, identity }) => {
      const object = decorate(source.object, release, phase.name);
      objects.set(objectId(identity), object);
      return toEntry(source, identity, object, `${phase.dir}/${fileName(identity)}`, objectFile(numbering.next++));
    }),
  };
}

function toEntry(
  source: ReleaseObject,
  identity: ObjectIdentity,
  object: JsonObject,
  yaml: string,
  file: string,
): PayloadObject {
  const { keep = false, conflict = 'fail', recreate = false, createOnly = false, absent = false } = source;
  return {
    file,
    yaml,
    sha256: objectSha256(object),
    apiVersion: identity.apiVersion,
    kind: identity.kind,
    ...(identity.namespace === undefined ? {} : { namespace: identity.namespace }),
    name: identity.name,
    keep,
    conflict,
    ...(source.yieldFields === undefined ? {} : { yieldFields: [...source.yieldFields] }),
    recreate,
    createOnly,
    absent,
    ...(source.bind === undefined || source.bind.length === 0 ? {} : { bind: [...source.bind] }),
  };
}

/** The payload of a release; undefined together with the reasons why it has none. */
export function buildPayload(
  release: DomainRelease,
  context: PayloadContext,
): { payload?: BuiltPayload; problems: Problem[] } {
  const problems = sizeProblems(release);
  if (problems.length > 0) return { problems };
  const objects = new Map<string, JsonObject>();
  const numbering: Numbering = { next: 0 };
  const phases = release.phases
    .filter((phase) => phase.objects.length > 0 || phase.gates.length > 0)
    .map((phase) => toPhase(phase, release.name, numbering, objects));
  const digest = manifestDigest(phases);
  const parsed = payloadContent.safeParse({
    cluster: context.cluster,
    ...(context.clusterUID === undefined ? {} : { clusterUID: context.clusterUID }),
    release: { name: release.name, domain: release.domain },
    manifestDigest: digest,
    installations: release.installations.map((entry) => ({ ...entry, manifestDigest: entry.manifestDigest ?? digest })),
    requires: [...release.requires],
    spans: [...release.spans],
    phases,
  });
  if (!parsed.success)
    return {
      problems: parsed.error.issues.map((issue) => ({
        reason: 'PayloadInvalid',
        message: issue.message,
        object: `Release ${release.name}`,
        path: issue.path.join('.'),
        remedy: 'the payload format has bounds; make the value fit them',
      })),
    };
  const content = parsed.data;
  const provenance: Provenance = {
    keelson: context.keelson,
    ...(release.helm === undefined ? {} : { helm: release.helm }),
    ...(context.specCommit === undefined ? {} : { specCommit: context.specCommit }),
    inputs: { ...context.inputs, charts: [...new Set(release.charts)].sort() },
    filteredHooks: [...release.filteredHooks].sort(),
  };
  return { payload: { release: release.name, digest: payloadDigest(content), content, provenance, objects }, problems };
}

function sizeProblems(release: DomainRelease): Problem[] {
  const found = release.phases.flatMap((phase) => phase.objects);
  const object = `Release ${release.name}`;
  const problems: Problem[] = [];
  if (found.length === 0)
    problems.push({
      reason: 'EmptyPayload',
      message: 'the payload would hold no object',
      object,
      remedy: 'an empty payload is refused, since it would prune everything; remove the release instead',
    });
  if (found.length > limits.objects)
    problems.push({
      reason: 'PayloadTooLarge',
      message: `the payload would hold ${found.length} objects; the limit is ${limits.objects}`,
      object,
      remedy: 'divide the manifests among several releases',
    });
  const seen = new Set<string>();
  for (const source of found) {
    const identity = identityOf(source.object);
    const id = objectId(identity);
    if (seen.has(id))
      problems.push({
        reason: 'DuplicateObject',
        message: 'the release holds the object twice',
        object: describeObject(identity),
        file: source.origin,
        remedy: 'keep one of the two',
      });
    seen.add(id);
  }
  return problems;
}
