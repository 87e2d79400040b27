/**
 * What Keelson itself puts into the workloads of an installation, told apart from what the chart has: its sidecars with their
 * volumes, its labels, and the network probe as a whole. Pure.
 */
import { labels, networkProbe, probeContainers, probeVolumes } from '../../constructs/api/constants.ts';
import { type PayloadContent, type PayloadObject, payloadObjectId } from '../../constructs/api/payload.ts';
import {
  deepEqual,
  isObject,
  type JsonObject,
  type JsonValue,
  objectOf,
  objectsOf,
} from '../../constructs/lib/json.ts';
import { parseObjectId } from '../../constructs/lib/names.ts';

/** A rendered payload: its index, and its objects by their id. */
export interface RenderedPayload {
  readonly content: PayloadContent;
  readonly object: (id: string) => JsonObject | undefined;
}

const names: ReadonlySet<string> = new Set(Object.values(probeContainers));
const volumeNames: ReadonlySet<string> = new Set(Object.values(probeVolumes));
const ownLabels: ReadonlySet<string> = new Set([
  labels.managedBy,
  labels.release,
  labels.phase,
  labels.installationUID,
]);
const ownObjects: ReadonlySet<string> = new Set([networkProbe.clients, networkProbe.servers, networkProbe.service]);

/** What no sidecar of ours has: with one of these it could do more than look, or make its pod unready. */
const beyondLooking = [
  'command',
  'ports',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
  'volumeDevices',
  'restartPolicy',
  'restartPolicyRules',
] as const;

/** What a sidecar of ours may have of root: sockets of another account. With others it could change the network of its node. */
const lookingCapabilities: readonly JsonValue[] = ['DAC_OVERRIDE'];

function addsNoCapability(capabilities: JsonValue | undefined): boolean {
  const { add = [] } = objectOf(capabilities);
  return Array.isArray(add) && add.every((one) => lookingCapabilities.includes(one));
}

/** Whether a container is a probe of ours that can only look: a name alone does not make one. */
function isSidecar(container: JsonObject): boolean {
  const { privileged, allowPrivilegeEscalation, capabilities } = objectOf(container.securityContext);
  return (
    names.has(String(container.name)) &&
    Array.isArray(container.args) &&
    container.args[0] === 'probe' &&
    beyondLooking.every((field) => container[field] === undefined) &&
    privileged !== true &&
    allowPrivilegeEscalation === false &&
    addsNoCapability(capabilities) &&
    objectsOf(container.volumeMounts).every(({ readOnly }) => readOnly === true)
  );
}

const isOwnVolume = (volume: JsonObject): boolean =>
  volumeNames.has(String(volume.name)) && (isObject(volume.projected) || isObject(volume.emptyDir));

/** The object with `edit` made of a member; a member that comes out empty is left out. */
function edited(object: JsonObject, key: string, edit: (value: JsonValue) => JsonObject | JsonObject[]): JsonObject {
  const { [key]: value, ...rest } = object;
  if (value === undefined) return object;
  const made = edit(value);
  return Object.keys(made).length === 0 ? rest : { ...rest, [key]: made };
}

const withoutSidecars = (pod: JsonObject): JsonObject =>
  edited(
    edited(pod, 'containers', (all) => objectsOf(all).filter((one) => !isSidecar(one))),
    'volumes',
    (all) => objectsOf(all).filter((one) => !isOwnVolume(one)),
  );

const withoutLabels = (metadata: JsonObject): JsonObject =>
  edited(metadata, 'labels', (all) =>
    Object.fromEntries(Object.entries(objectOf(all)).filter(([label]) => !ownLabels.has(label))),
  );

/** The object as it would be if Keelson put nothing into it. */
export const asCharted = (object: JsonObject): JsonObject =>
  edited(
    edited(object, 'metadata', (metadata) => withoutLabels(objectOf(metadata))),
    'spec',
    (spec) =>
      edited(objectOf(spec), 'template', (template) =>
        edited(objectOf(template), 'spec', (pod) => withoutSidecars(objectOf(pod))),
      ),
  );

/** Whether an object is Keelson's as a whole. */
const isOwn = (id: string, phase: string): boolean => {
  const { kind, name } = parseObjectId(id);
  return phase === 'network-probe' && ['DaemonSet', 'Service'].includes(kind) && ownObjects.has(name);
};

/** How an object stands in the index, apart from its bytes. */
const standing = ({ file: _file, yaml: _yaml, sha256: _sha256, ...rest }: PayloadObject): JsonValue =>
  rest as unknown as JsonObject;

interface Place {
  readonly phase: string;
  readonly entry: PayloadObject;
}

const placesOf = ({ phases }: PayloadContent): Map<string, Place> =>
  new Map(
    phases.flatMap(({ name: phase, objects }) =>
      objects.map((entry) => [payloadObjectId(entry), { phase, entry }] as const),
    ),
  );

/** Those of the objects that change in nothing but what Keelson puts in itself. What is not at hand is not among them. */
export function ownChanges(before: RenderedPayload, after: RenderedPayload, ids: readonly string[]): Set<string> {
  const [old, next] = [placesOf(before.content), placesOf(after.content)];
  return new Set(
    ids.filter((id) => {
      const [was, is] = [old.get(id), next.get(id)];
      if (was === undefined || was.entry.absent || is?.entry.absent === true) return false;
      if (is === undefined) return isOwn(id, was.phase);
      if (was.phase !== is.phase || !deepEqual(standing(was.entry), standing(is.entry))) return false;
      if (isOwn(id, is.phase)) return true;
      const [from, to] = [before.object(id), after.object(id)];
      return from !== undefined && to !== undefined && deepEqual(asCharted(from), asCharted(to));
    }),
  );
}
