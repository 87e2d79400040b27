import { type Digest, digestOf, sha256Digest } from '../../constructs/lib/digest.ts';
import { groupOf } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import type { ParseDocuments } from '../cache/documents.ts';
import { duplicateProblems } from './identity.ts';
import { type ManifestSet, readManifestSets } from './manifestsets.ts';
import { type Documents, readObject, type SpecKinds } from './object.ts';
import { readSettings, type Settings, settingsFiles } from './settings.ts';
import { type ClusterFiles, problemAt, type SourceDocument, type SourceObject, toSource } from './source.ts';
import { validateDocument } from './validate.ts';

/** Everything a cluster folder says, read and checked. */
export interface LoadedCluster extends Settings {
  /** The folder as problems name it. */
  readonly folder: string;
  /** Specs at the top of the folder, ordered by file and place. */
  readonly specs: readonly SourceObject[];
  /** Plain manifests by release, ordered by name. */
  readonly manifests: readonly ManifestSet[];
  /** Digests of what was read, for provenance. */
  readonly inputs: { readonly specs: Digest; readonly lock: Digest; readonly inventory: Digest };
  readonly warnings: readonly Problem[];
}

export type Loaded =
  | { readonly ok: true; readonly loaded: LoadedCluster }
  | { readonly ok: false; readonly problems: Problem[] };

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads the files of a cluster. Either all of it is well-formed, or every problem is told and nothing is returned.
 * What needs a lock, charts or other releases is checked later, by rendering.
 */
export function loadCluster(source: ClusterFiles, specKinds: SpecKinds, parse: ParseDocuments = parseYaml): Loaded {
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const documents = readDocuments(source, parse, problems);
  const single = (name: string): SourceDocument | undefined => onlyDocument(source, name, documents, problems);
  const settings = readSettings(
    source.folder,
    {
      cluster: single(settingsFiles.cluster),
      inventory: single(settingsFiles.inventory),
      lock: single(settingsFiles.lock),
    },
    problems,
  );
  const specs = readSpecs(documents, specKinds, problems, warnings);
  const manifests = readManifestSets(source.folder, documents, specKinds, problems, warnings);
  const all = [...specs, ...manifests.flatMap((set) => set.phases.flatMap((phase) => phase.objects))];
  problems.push(...duplicateProblems(all));
  if (settings === undefined || problems.length > 0) return { ok: false, problems };
  const loaded = { ...settings, folder: source.folder, specs, manifests, inputs: inputDigests(source), warnings };
  return { ok: true, loaded };
}

function readDocuments(source: ClusterFiles, parse: ParseDocuments, problems: Problem[]): Documents {
  const read = new Map<string, SourceDocument[]>();
  for (const [path, bytes] of [...source.files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const file = `${source.folder}/${path}`;
    // Certificates of registries (`spec.registries[].caFile`) stand beside the settings; they render nothing.
    if (!path.includes('/') && /\.(pem|crt)$/.test(path)) continue;
    if (!path.endsWith('.yaml')) {
      problems.push({
        reason: 'FileRefused',
        message:
          'only .yaml files, notes (.md), hidden files and certificates at the top may stand in a cluster folder',
        file,
        remedy: /\.(yml|json)$/.test(path) ? 'rename it to .yaml' : 'move it elsewhere',
      });
      continue;
    }
    const text = decode(bytes, file, problems);
    if (text === undefined) continue;
    const parsed = parse(text, file);
    problems.push(...parsed.problems);
    const documents: SourceDocument[] = [];
    for (const document of parsed.documents) {
      const found = toSource(document, file);
      if ('value' in found && 'locate' in found) documents.push(found);
      else problems.push(found);
    }
    read.set(path, documents);
  }
  return read;
}

function decode(bytes: Uint8Array, file: string, problems: Problem[]): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    problems.push({ reason: 'InvalidYAML', message: 'the file is not UTF-8', file, remedy: 'save it as UTF-8' });
    return undefined;
  }
}

function onlyDocument(
  source: ClusterFiles,
  name: string,
  documents: Documents,
  problems: Problem[],
): SourceDocument | undefined {
  const found = documents.get(name);
  if (found === undefined) return undefined;
  const [first, second] = found;
  // A file that could not be read has told its problems; only one without any content is silent.
  if (first === undefined && problems.every((problem) => problem.file !== `${source.folder}/${name}`))
    problems.push({
      reason: 'InvalidDocument',
      message: 'the file is empty',
      file: `${source.folder}/${name}`,
      remedy: 'write the document, or remove the file',
    });
  if (second !== undefined)
    problems.push(
      problemAt(second, [], {
        reason: 'InvalidDocument',
        message: `${name} holds more than one document`,
        remedy: 'keep one document in this file',
      }),
    );
  return first;
}

function readSpecs(
  documents: Documents,
  specKinds: SpecKinds,
  problems: Problem[],
  warnings: Problem[],
): SourceObject[] {
  const settings = new Set<string>(Object.values(settingsFiles));
  const specs: SourceObject[] = [];
  for (const [path, found] of documents) {
    if (path.includes('/') || settings.has(path)) continue;
    for (const document of found) {
      const object = readObject(document, problems, warnings);
      if (object === undefined) continue;
      const kind = `${groupOf(object.identity.apiVersion)}/${object.identity.kind}`;
      if (!specKinds.has(kind))
        problems.push(
          problemAt(object, ['kind'], {
            reason: 'UnknownSpecKind',
            message: `${object.identity.kind} (${object.identity.apiVersion}) is no spec that keelson renders`,
            remedy: `put plain manifests into manifests/<name>/<NN-phase>/; specs are ${[...specKinds].sort().join(', ') || 'none'}`,
          }),
        );
      else if (validateDocument(object, problems) !== undefined) specs.push(object);
    }
  }
  return specs;
}

function inputDigests(source: ClusterFiles): LoadedCluster['inputs'] {
  const of = (name: string): Digest => sha256Digest(source.files.get(name) ?? '');
  const specs = [...source.files]
    .filter(([path]) => path !== settingsFiles.lock && path !== settingsFiles.inventory)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, bytes]) => [path, sha256Digest(bytes)]);
  return { specs: digestOf(specs), lock: of(settingsFiles.lock), inventory: of(settingsFiles.inventory) };
}
