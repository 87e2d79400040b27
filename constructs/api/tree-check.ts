/** Whether a rendered tree is of one piece: its list, its payloads, what carries them, and who signed. Reads nothing. */
import { sha256Hex } from '../lib/digest.ts';
import { deepEqual, isObject, type JsonObject } from '../lib/json.ts';
import { type Problem, sortProblems } from '../lib/problems.ts';
import { parseYaml } from '../lib/yaml.ts';
import { annotations, apiVersion, labels } from './constants.ts';
import { joinChunks, type ReadConfigMap } from './payload-chunks.ts';
import { decodePayload, type Payload, verifyFiles } from './payload-codec.ts';
import { type SignatureVerdict, type TrustSet, verifySignature } from './signature.ts';
import { indexPath, readTreeIndex, type Tree, type TreeIndex, treeFile, unitFolder } from './tree.ts';

/** A payload of a tree that was read in full. */
export interface CheckedRelease {
  readonly name: string;
  readonly payload: Payload;
  readonly signature: SignatureVerdict;
}

export interface TreeCheck {
  readonly releases: readonly CheckedRelease[];
  readonly problems: readonly Problem[];
}

const remedy = 'restore the file, or publish again';
const wrong = (file: string, message: string, more: Partial<Problem> = {}): Problem => ({
  reason: 'TreeInvalid',
  message,
  file,
  remedy,
  ...more,
});

/**
 * The files that a tree's list names, and what is wrong with them. Other files may stand beside a tree; they are no
 * part of it.
 */
export function listedFiles(
  tree: Tree,
  cluster: string,
): { readonly index: TreeIndex | undefined; readonly files: Tree; readonly problems: Problem[] } {
  const list = tree.get(treeFile);
  if (list === undefined)
    return { index: undefined, files: new Map(), problems: [wrong(treeFile, 'there is no list')] };
  const read = readTreeIndex(list);
  if (!read.ok) return { index: undefined, files: new Map(), problems: read.problems };
  const problems: Problem[] = [];
  if (read.value.cluster !== cluster)
    problems.push(wrong(treeFile, `the tree belongs to cluster ${read.value.cluster}, not to ${cluster}`));
  const files = new Map([[treeFile, list]]);
  for (const { path, sha256 } of read.value.files) {
    const bytes = tree.get(path);
    if (bytes === undefined) problems.push(wrong(path, 'the file is missing'));
    else if (sha256Hex(bytes) !== sha256) problems.push(wrong(path, 'the file is not the one that was rendered'));
    else files.set(path, bytes);
  }
  return { index: read.value, files, problems };
}

/** Folders that couriers and the executor's people take as a whole: a file that is not listed would count there. */
const closedFolders = ['sync/', 'courier/', 'payload/'];

/**
 * Checks a tree against itself, and its signatures against trusted keys.
 * @param trust keys whose signatures count; undefined when signatures are only told.
 */
export async function checkTree(tree: Tree, cluster: string, trust: TrustSet | undefined): Promise<TreeCheck> {
  const { index, files, problems } = listedFiles(tree, cluster);
  if (index === undefined) return { releases: [], problems };
  const listed = new Set(index.files.map(({ path }) => path));
  for (const path of tree.keys())
    if (!listed.has(path) && closedFolders.some((folder) => path.startsWith(folder)))
      problems.push(wrong(path, 'the file is not part of the tree, and a courier would take it along'));
  const objects = objectsOf(files, problems);
  const releases: CheckedRelease[] = [];
  for (const entry of index.releases) {
    const read = readPayload(files, entry, problems);
    if (read === undefined) continue;
    const signature = verifySignature(entry.digest, read.index.signature, trust ?? new Map());
    if (trust !== undefined) problems.push(...signatureProblems(entry.name, signature));
    releases.push({ name: entry.name, payload: read, signature });
    problems.push(...(await carried(entry, read, objects)));
  }
  problems.push(...strangers(index, files, objects));
  return { releases, problems: sortProblems(problems) };
}

interface Placed {
  readonly file: string;
  readonly object: JsonObject;
}

/** The objects of all YAML below sync/ and courier/; what can not be read is told. */
function objectsOf(files: Tree, problems: Problem[]): Placed[] {
  const placed: Placed[] = [];
  for (const [file, bytes] of files) {
    if (!/^(sync|courier)\/.*\.yaml$/.test(file)) continue;
    const parsed = parseYaml(Buffer.from(bytes).toString('utf8'), file);
    problems.push(...parsed.problems);
    for (const { value } of parsed.documents)
      if (isObject(value)) placed.push({ file, object: value });
      else problems.push(wrong(file, 'the document is not an object'));
  }
  return placed;
}

function readPayload(
  files: Tree,
  { name, digest }: TreeIndex['releases'][number],
  problems: Problem[],
): Payload | undefined {
  const folder = `payload/${name}/`;
  const own = [...files].filter(([path]) => path.startsWith(folder));
  const read = verifyFiles(new Map(own.map(([path, bytes]) => [path.slice(folder.length), bytes])), 'tree');
  if (!read.ok) {
    problems.push(...read.problems.map((problem) => ({ ...problem, file: `${folder}${problem.file ?? ''}` })));
    return undefined;
  }
  const { index } = read.value;
  if (index.digest !== digest)
    problems.push(wrong(indexPath(name), `the payload is ${index.digest}, the list of the tree says ${digest}`));
  if (index.content.release.name !== name)
    problems.push(wrong(indexPath(name), `the payload is that of release ${index.content.release.name}`));
  return read.value;
}

function signatureProblems(release: string, verdict: SignatureVerdict): Problem[] {
  const at = { file: indexPath(release) };
  switch (verdict.kind) {
    case 'valid':
      return [];
    case 'unsigned':
      return [
        { reason: 'SignatureMissing', message: 'the payload is not signed', ...at, remedy: 'publish with a key' },
      ];
    case 'unknownKey':
      return [
        {
          reason: 'SignatureUntrusted',
          message: `key ${verdict.keyId} signed it; trusted are ${verdict.trusted.join(', ') || 'none'}`,
          ...at,
          remedy: 'trust that key, or publish with one that is trusted',
        },
      ];
    case 'invalid':
      return [
        {
          reason: 'SignatureInvalid',
          message: `the signature by key ${verdict.keyId} does not fit the content`,
          ...at,
          remedy: 'find out who changed it, and publish again',
        },
      ];
  }
}

const metadataOf = ({ object }: Placed): JsonObject => (isObject(object.metadata) ? object.metadata : {});
const stringsOf = (value: unknown): Readonly<Record<string, unknown>> => (isObject(value) ? value : {});

const unit = unitFolder('20-releases');
const isRelease = ({ file, object }: Placed): boolean =>
  file.startsWith(`${unit}/`) && object.kind === 'Release' && object.apiVersion === apiVersion;
const holdsPayload = (placed: Placed): boolean =>
  placed.file.startsWith(`${unit}/`) &&
  placed.object.kind === 'ConfigMap' &&
  stringsOf(metadataOf(placed).labels)[labels.holds] === 'payload';

/** What a courier carries of a release: its Release asks for the digest, and its chunks are the very payload. */
async function carried(
  { name, digest }: TreeIndex['releases'][number],
  payload: Payload,
  objects: readonly Placed[],
): Promise<Problem[]> {
  const problems: Problem[] = [];
  const releases = objects.filter((placed) => isRelease(placed) && metadataOf(placed).name === name);
  if (releases.length !== 1) problems.push(wrong(unit, `it holds ${releases.length} Releases ${name}, not one`));
  for (const { file, object } of releases) {
    const asked = isObject(object.spec) && isObject(object.spec.payload) ? object.spec.payload.digest : undefined;
    if (asked !== digest)
      problems.push(wrong(file, `the Release asks for payload ${String(asked)}, not for ${digest}`));
  }
  // A release that is read from an artifact of Flux has no inbox: the artifact is this very tree.
  const byConfigMaps = releases.every(
    ({ object }) => !isObject(object.spec) || !isObject(stringsOf(object.spec.source).flux),
  );
  const chunks = objects.filter(
    (placed) => holdsPayload(placed) && stringsOf(metadataOf(placed).labels)[labels.release] === name,
  );
  for (const chunk of chunks) {
    const held = stringsOf(metadataOf(chunk).annotations)[annotations.payload];
    if (held !== digest) problems.push(wrong(chunk.file, `the ConfigMap holds a part of payload ${String(held)}`));
  }
  if (chunks.length === 0 && !byConfigMaps) return problems;
  const joined = joinChunks(
    digest,
    chunks.map(({ object }) => object as unknown as ReadConfigMap),
  );
  const decoded = joined.ok ? await decodePayload(joined.value) : joined;
  if (!decoded.ok) problems.push(...decoded.problems.map((p) => wrong(unit, `release ${name}: ${p.message}`)));
  else if (!samePayload(decoded.value, payload))
    problems.push(wrong(unit, `the ConfigMaps of release ${name} do not carry the payload of ${indexPath(name)}`));
  return problems;
}

/** Digests were checked on both sides: with them the objects are the same. Signature and provenance are not in them. */
const samePayload = (a: Payload, b: Payload): boolean =>
  deepEqual(a.index as unknown as JsonObject, b.index as unknown as JsonObject);

/** What names a release that the tree does not list. */
function strangers(index: TreeIndex, files: Tree, objects: readonly Placed[]): Problem[] {
  const known = new Set<unknown>(index.releases.map(({ name }) => name));
  const problems: Problem[] = [];
  for (const file of files.keys()) {
    const name = /^payload\/([^/]+)\/index\.json$/.exec(file)?.[1];
    if (name !== undefined && !known.has(name))
      problems.push(wrong(file, 'the list of the tree names no such release'));
  }
  for (const placed of objects) {
    const metadata = metadataOf(placed);
    const release = isRelease(placed)
      ? metadata.name
      : holdsPayload(placed)
        ? stringsOf(metadata.labels)[labels.release]
        : undefined;
    if (release !== undefined && !known.has(release))
      problems.push(wrong(placed.file, `the list of the tree names no release ${String(release)}`));
  }
  return problems;
}
