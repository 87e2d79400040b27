import { apiGroup } from '../../constructs/api/constants.ts';
import { crdKind } from '../../constructs/k8s/kinds.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { groupOf, isDns1123Label } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { checkListKeys } from './listkeys.ts';
import { type Documents, readObject, type SpecKinds } from './object.ts';
import { problemAt, type SourceObject } from './source.ts';

/** The plain manifests of one release: `manifests/<name>/<NN-phase>/*.yaml`. */
export interface ManifestSet {
  readonly name: string;
  /** The folder as problems name it. */
  readonly folder: string;
  /** Ordered by folder name, and so by number. */
  readonly phases: readonly ManifestPhase[];
}

export interface ManifestPhase {
  /** `10-base` */
  readonly dir: string;
  /** `base` */
  readonly name: string;
  readonly objects: readonly SourceObject[];
}

const phaseForm = /^[0-9]{2}-([a-z0-9]([-a-z0-9]*[a-z0-9])?)$/;
/** The Release is called `manifests-<name>`, a label value. */
const maxName = 63 - 'manifests-'.length;

/** Groups all documents below `manifests/` by release and phase. */
export function readManifestSets(
  folder: string,
  documents: Documents,
  specKinds: SpecKinds,
  problems: Problem[],
  warnings: Problem[],
): ManifestSet[] {
  const sets = new Map<string, Map<string, SourceObject[]>>();
  for (const [path, found] of documents) {
    if (!path.includes('/')) continue;
    const place = placeOf(folder, path, problems);
    if (place === undefined) continue;
    const phases = sets.get(place.set) ?? new Map<string, SourceObject[]>();
    sets.set(place.set, phases);
    const objects = phases.get(place.dir) ?? [];
    phases.set(place.dir, objects);
    for (const document of found) {
      const object = readObject(document, problems, warnings);
      if (object === undefined) continue;
      const refused = ownKind(object, specKinds);
      if (refused === undefined) objects.push(object);
      else problems.push(refused);
    }
  }
  return [...sets].map(([name, phases]) => toSet(folder, name, phases, problems));
}

function placeOf(folder: string, path: string, problems: Problem[]): { set: string; dir: string } | undefined {
  const [top, set = '', dir = '', file, ...deeper] = path.split('/');
  const say = (message: string): undefined => {
    problems.push({
      reason: 'FilePlace',
      message,
      file: `${folder}/${path}`,
      remedy: 'plain manifests stand in manifests/<name>/<NN-phase>/<file>.yaml',
    });
    return undefined;
  };
  if (top !== 'manifests') return say(`there is no folder ${top} in a cluster folder`);
  if (file === undefined || deeper.length > 0) return say('the file does not stand in the folder of a phase');
  if (!isDns1123Label(set) || set.length > maxName) return say(`'${set}' can not be part of the name of a release`);
  if (!phaseForm.test(dir) || dir.length > 66) return say(`'${dir}' is not of the form NN-phase, such as 10-base`);
  return { set, dir };
}

/** Kinds of ours have their own place; among plain manifests they would escape their checks. */
function ownKind(object: SourceObject, specKinds: SpecKinds): Problem | undefined {
  const { apiVersion, kind } = object.identity;
  const group = groupOf(apiVersion);
  if (specKinds.has(`${group}/${kind}`))
    return problemAt(object, ['kind'], {
      reason: 'SpecAmongManifests',
      message: `${kind} is a spec that keelson renders, not a plain manifest`,
      remedy: 'move the document to a file at the top of the cluster folder',
    });
  if (group === apiGroup)
    return problemAt(object, ['kind'], {
      reason: 'SpecAmongManifests',
      message: `${kind} objects are written by rendering`,
      remedy: 'remove the document; delivery settings stand in cluster.yaml under spec.releases',
    });
  return undefined;
}

function toSet(
  folder: string,
  name: string,
  phases: ReadonlyMap<string, SourceObject[]>,
  problems: Problem[],
): ManifestSet {
  const at = `${folder}/manifests/${name}`;
  const definitions = new Map<string, JsonObject>();
  for (const object of [...phases.values()].flat()) collectSchemas(object, definitions);
  const sorted = [...phases].sort(([a], [b]) => (a < b ? -1 : 1));
  const seen = new Map<string, string>();
  for (const [dir] of sorted) {
    const phase = dir.slice(3);
    const other = seen.get(phase);
    if (other === undefined) seen.set(phase, dir);
    else
      problems.push({
        reason: 'DuplicatePhase',
        message: `phases ${other} and ${dir} have the same name`,
        file: `${at}/${dir}`,
        remedy: 'give one of them another name',
      });
  }
  const withSchemas = (object: SourceObject): SourceObject => {
    const schema = definitions.get(`${object.identity.apiVersion}/${object.identity.kind}`);
    if (schema === undefined) return object;
    const lists = checkListKeys(object, schema);
    problems.push(...lists.problems);
    return { ...object, value: lists.value };
  };
  return {
    name,
    folder: at,
    phases: sorted.map(([dir, objects]) => ({ dir, name: dir.slice(3), objects: objects.map(withSchemas) })),
  };
}

/** Schemas by `group/version/Kind` of the definitions among the manifests. */
function collectSchemas(object: SourceObject, into: Map<string, JsonObject>): void {
  if (`${groupOf(object.identity.apiVersion)}/${object.identity.kind}` !== crdKind) return;
  const { spec } = object.value;
  if (!isObject(spec) || !isObject(spec.names) || !Array.isArray(spec.versions)) return;
  for (const version of spec.versions) {
    if (!isObject(version) || !isObject(version.schema)) continue;
    const schema = version.schema.openAPIV3Schema;
    if (isObject(schema)) into.set(`${spec.group}/${version.name}/${spec.names.kind}`, schema);
  }
}
