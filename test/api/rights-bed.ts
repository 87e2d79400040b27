import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import type { Rendered } from '../../renderer/render.ts';
import type { RequestRecord } from '../faults/plan.ts';

/** Rights as single atoms: where, verb, group, resource. Names are kept beside them. */

interface Atom {
  /** Namespace of the Role; `*` for the ClusterRole. */
  readonly where: string;
  readonly verb: string;
  readonly resource: string;
  /** Absent when the right holds for every name. */
  readonly names?: ReadonlySet<string>;
}

const texts = (value: JsonValue | undefined): string[] => (Array.isArray(value) ? value.map(String) : []);
const resourceText = (group: string, resource: string): string => (group === '' ? resource : `${resource}.${group}`);

/** Everything that the rendered roles of an account grant, wherever they are. */
export function grantedAtoms(rendered: Rendered, account = 'keelson-executor'): Atom[] {
  const file = new RegExp(`^(sync/10-system|payload/.*)/(cluster)?role\\.[^_]+_(_|[^_]+)_${account}\\.yaml$`);
  const roles = [...rendered.tree]
    .filter(([path]) => file.test(path))
    .map(([path, bytes]) => parseYaml(Buffer.from(bytes).toString(), path).documents[0]?.value)
    .filter(isObject);
  return roles.flatMap(({ metadata, rules }) => {
    const { namespace } = metadata as JsonObject;
    const where = typeof namespace === 'string' ? namespace : '*';
    return (Array.isArray(rules) ? rules.filter(isObject) : []).flatMap((rule) => atomsOf(rule, where));
  });
}

function atomsOf(rule: JsonObject, where: string): Atom[] {
  const names = texts(rule.resourceNames);
  return texts(rule.apiGroups).flatMap((group) =>
    texts(rule.resources).flatMap((resource) =>
      texts(rule.verbs).map((verb) => ({
        where,
        verb,
        resource: resourceText(group, resource),
        ...(names.length === 0 ? {} : { names: new Set(names) }),
      })),
    ),
  );
}

/** What a request asks of RBAC: an apply that creates asks for two rights. */
function verbsOf({ verb, status }: RequestRecord): string[] {
  if (verb === 'apply') return status === 201 ? ['patch', 'create'] : ['patch'];
  return [verb];
}

/** Whether a right is one of those that let a request through, for one verb that it takes. */
function covers(atom: Atom, request: RequestRecord, verb: string): boolean {
  const { group, resource, subresource, namespace, name } = request;
  const asked = resourceText(group, subresource === undefined ? resource : `${resource}/${subresource}`);
  if (atom.resource !== asked || atom.verb !== verb) return false;
  if (atom.where !== '*' && atom.where !== namespace) return false;
  return atom.names === undefined || (name !== undefined && atom.names.has(name));
}

const isNarrower = (a: Atom, b: Atom): boolean =>
  (a.where !== '*' && b.where === '*') || (a.where === b.where && a.names !== undefined && b.names === undefined);

/** Rights that no request needed: none asked for them, or a narrower one would have been enough each time. */
export function unneeded(atoms: readonly Atom[], requests: readonly RequestRecord[]): string[] {
  const needed = new Set<Atom>();
  for (const request of requests)
    for (const verb of verbsOf(request)) {
      const all = atoms.filter((atom) => covers(atom, request, verb));
      for (const atom of all) if (!all.some((other) => isNarrower(other, atom))) needed.add(atom);
    }
  return [...new Set(atoms.filter((atom) => !needed.has(atom)).map(atomText))].sort();
}

/** Requests that none of the rights lets through. */
export const uncovered = (atoms: readonly Atom[], requests: readonly RequestRecord[]): string[] => [
  ...new Set(
    requests.flatMap((request) =>
      verbsOf(request)
        .filter((verb) => !atoms.some((atom) => covers(atom, request, verb)))
        .map((verb) => `${verb} ${request.resource} ${request.namespace ?? ''}/${request.name ?? ''}`),
    ),
  ),
];

const atomText = ({ where, verb, resource, names }: Atom): string =>
  `${where} ${verb} ${resource}${names === undefined ? '' : ' by name'}`;
