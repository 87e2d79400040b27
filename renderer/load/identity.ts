import { builtinKind } from '../../constructs/k8s/kinds.ts';
import { describeObject, isDns1123Label, isDns1123Subdomain, objectId } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { member, problemAt, type SourceDocument, type SourceObject } from './source.ts';

const apiVersionForm = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?v[0-9]+((alpha|beta)[0-9]+)?$/;
const kindForm = /^[A-Z][A-Za-z0-9]{0,62}$/;
/** RBAC names may hold what a URL path segment may. */
const pathSegment = /^[^/%\s]{1,253}$/;

function readText(
  document: SourceDocument,
  path: readonly string[],
  problems: Problem[],
  valid: (text: string) => boolean,
  wanted: string,
): string {
  const owner = path.slice(0, -1).reduce((value, key) => member(value, key), document.value);
  const found = owner[path.at(-1) ?? ''];
  if (typeof found === 'string' && valid(found)) return found;
  const missing = found === undefined || found === null;
  problems.push(
    problemAt(document, path, {
      reason: missing ? 'FieldMissing' : 'FieldInvalid',
      message: missing ? `${path.join('.')} is missing` : `${path.join('.')} is not ${wanted}`,
      ...(missing ? {} : { value: typeof found === 'string' ? found : JSON.stringify(found) }),
      remedy: `write ${wanted}`,
    }),
  );
  return '';
}

/** The document as an object with an identity, or everything that is wrong with its identity. */
export function identify(document: SourceDocument): { object: SourceObject } | { problems: Problem[] } {
  const problems: Problem[] = [];
  const apiVersion = readText(document, ['apiVersion'], problems, (t) => apiVersionForm.test(t), 'group/version');
  const kind = readText(document, ['kind'], problems, (t) => kindForm.test(t), 'a kind in upper camel case');
  const rbac = apiVersion.startsWith('rbac.authorization.k8s.io/');
  const goodName = (text: string): boolean => (rbac ? pathSegment.test(text) : isDns1123Subdomain(text));
  const generated = member(document.value, 'metadata').generateName !== undefined;
  const wanted = generated ? 'a name; generateName has no identity to keep' : 'the name of the object';
  const name = readText(document, ['metadata', 'name'], problems, goodName, wanted);
  const namespace = member(document.value, 'metadata').namespace;
  if (namespace !== undefined && namespace !== null && !(typeof namespace === 'string' && isDns1123Label(namespace)))
    problems.push(
      problemAt(document, ['metadata', 'namespace'], {
        reason: 'FieldInvalid',
        message: 'metadata.namespace is not the name of a namespace',
        value: JSON.stringify(namespace),
        remedy: 'write the name of the namespace, in quotes when it looks like a number',
      }),
    );
  if (problems.length > 0) return { problems };
  const object: SourceObject = {
    ...document,
    identity: { apiVersion, kind, name, ...(typeof namespace === 'string' ? { namespace } : {}) },
  };
  const scope = scopeProblem(object);
  return scope === undefined ? { object } : { problems: [scope] };
}

/** Nothing chooses a namespace for an object, and a namespace on a cluster-wide object would be dropped in silence. */
function scopeProblem(object: SourceObject): Problem | undefined {
  const { namespace, kind } = object.identity;
  const known = builtinKind(object.identity);
  if (known === undefined || known.namespaced === (namespace !== undefined)) return undefined;
  return known.namespaced
    ? problemAt(object, ['metadata', 'namespace'], {
        reason: 'NamespaceMissing',
        message: `metadata.namespace is missing; a ${kind} lives in a namespace`,
        remedy: 'write the namespace; no default is assumed',
      })
    : problemAt(object, ['metadata', 'namespace'], {
        reason: 'NamespaceForbidden',
        message: `a ${kind} belongs to the whole cluster`,
        remedy: 'remove metadata.namespace',
      });
}

/** Every object after the first of its identity is a problem that names the first. */
export function duplicateProblems(objects: readonly SourceObject[]): Problem[] {
  const first = new Map<string, SourceObject>();
  const problems: Problem[] = [];
  for (const object of objects) {
    const id = objectId(object.identity);
    const other = first.get(id);
    if (other === undefined) first.set(id, object);
    else
      problems.push(
        problemAt(object, [], {
          reason: 'DuplicateObject',
          message: `${describeObject(object.identity)} is written twice; the other one is ${other.file}:${other.line}`,
          remedy: 'keep one of the two documents',
        }),
      );
  }
  return problems;
}
