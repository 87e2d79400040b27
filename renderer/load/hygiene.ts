import { annotations, limits } from '../../constructs/api/constants.ts';
import { metallbAnnotations } from '../../constructs/api/metallb.ts';
import { canonicalJson, isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { member, problemAt, type SourceObject } from './source.ts';

/** Bytes of all annotations at which the API server refuses an object, and at which we begin to warn. */
const annotationBytes = { fail: 256 * 1024, warn: 200 * 1024 };

const serverFields = [
  'uid',
  'resourceVersion',
  'generation',
  'managedFields',
  'selfLink',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
];

const liveAnnotations: Readonly<Record<string, string>> = {
  'kubectl.kubernetes.io/last-applied-configuration': 'it is a copy that kubectl keeps on live objects',
  [annotations.hold]: 'a hold is set on the live object, so that no commit is needed to set or lift it',
  [annotations.pin]: 'a pin is set on the live Release, so that no commit is needed to set or lift it',
  [annotations.confirmDelete]: 'it confirms one deletion of one live object',
  [annotations.id]: 'the renderer sets it',
  [annotations.payload]: 'the renderer sets it',
  [metallbAnnotations.pinned]: 'the driver of the address ledger sets it, and takes off what it says is its own',
};

/** What only a live object carries. `status` and an empty creationTimestamp are dropped in silence: tools write them. */
function copiedFields(object: SourceObject): Problem[] {
  const metadata = member(object.value, 'metadata');
  const fields = serverFields
    .filter((field) => metadata[field] !== undefined && metadata[field] !== null)
    .map((field) =>
      problemAt(object, ['metadata', field], {
        reason: 'ServerField',
        message: `metadata.${field} is written by the API server`,
        remedy: 'remove it; it was copied from a live object',
      }),
    );
  const owners = metadata.ownerReferences;
  if (owners !== undefined && owners !== null)
    fields.push(
      problemAt(object, ['metadata', 'ownerReferences'], {
        reason: 'ServerField',
        message: 'owner references hold UIDs that only the cluster knows',
        remedy: 'remove them; keelson sets the owners of what it applies',
      }),
    );
  const found = member(metadata, 'annotations');
  for (const [name, why] of Object.entries(liveAnnotations))
    if (found[name] !== undefined)
      fields.push(
        problemAt(object, ['metadata', 'annotations', name], {
          reason: 'LiveAnnotation',
          message: `annotation ${name} does not belong in Git: ${why}`,
          remedy: 'remove it',
        }),
      );
  return fields;
}

function secretProblem(object: SourceObject): Problem[] {
  const { apiVersion, kind, namespace, name } = object.identity;
  if (apiVersion !== 'v1' || kind !== 'Secret') return [];
  // A value of the wrong type would be refused by the API server, but only after it was published.
  const field = ['data', 'stringData'].find((key) => {
    const value = object.value[key];
    return isObject(value) ? Object.keys(value).length > 0 : value !== undefined && value !== null;
  });
  if (field === undefined) return [];
  return [
    problemAt(object, [field], {
      reason: 'SecretInGit',
      message: 'a Secret with data must not be committed',
      remedy: `remove the document, and create Secret ${namespace ?? ''}/${name} in the cluster by your secret store`,
    }),
  ];
}

function sizes(object: SourceObject): { problems: Problem[]; warnings: Problem[] } {
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const found = Object.entries(member(member(object.value, 'metadata'), 'annotations'));
  const bytes = found.reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + (typeof value === 'string' ? Buffer.byteLength(value) : 0),
    0,
  );
  const at = ['metadata', 'annotations'];
  if (bytes >= annotationBytes.fail)
    problems.push(
      problemAt(object, at, {
        reason: 'AnnotationsTooLarge',
        message: `the annotations have ${bytes} bytes; the API server refuses ${annotationBytes.fail}`,
        remedy: 'move the content into a ConfigMap',
      }),
    );
  else if (bytes >= annotationBytes.warn)
    warnings.push(
      problemAt(object, at, {
        reason: 'AnnotationsLarge',
        message: `the annotations have ${bytes} bytes; the API server refuses ${annotationBytes.fail}`,
        remedy: 'move the content into a ConfigMap before it grows further',
      }),
    );
  const size = Buffer.byteLength(canonicalJson(object.value));
  if (size > limits.objectBytes)
    problems.push(
      problemAt(object, [], {
        reason: 'ObjectTooLarge',
        message: `the object has ${size} bytes; the limit is ${limits.objectBytes}`,
        remedy: 'split it into several objects',
      }),
    );
  return { problems, warnings };
}

/** Whether an object may stand in Git at all: server-written fields, secret data, size. */
export function checkHygiene(object: SourceObject): { problems: Problem[]; warnings: Problem[] } {
  const { problems, warnings } = sizes(object);
  return { problems: [...copiedFields(object), ...secretProblem(object), ...problems], warnings };
}

/** The object as it is wanted: without status and creationTimestamp. */
export function desiredObject(object: JsonObject): JsonObject {
  const { status: _status, ...rest } = object;
  const { creationTimestamp: _created, ...metadata } = member(object, 'metadata');
  return { ...rest, metadata };
}
