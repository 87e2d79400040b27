import { sha256Hex } from '../lib/digest.ts';
import { canonicalJson, isObject, type JsonObject, type JsonValue } from '../lib/json.ts';
import type { Problem } from '../lib/problems.ts';
import { gzipFixed, packTar, readPacked, type TarFile, UnsafeArchive } from '../lib/tar.ts';
import { parseYaml } from '../lib/yaml.ts';
import { limits, payloadFormatVersion } from './constants.ts';
import {
  manifestDigest,
  type PayloadIndex,
  type PayloadObject,
  payloadDigest,
  payloadIndex,
  payloadObjectId,
} from './payload.ts';
import { readShape, type Shaped } from './shape.ts';

/** The archive of a payload: `index.json` and `objects/NNNN.json`, canonical, gzipped at a fixed level. */

export interface Payload {
  readonly index: PayloadIndex;
  /** Objects by their id; tombstones included. */
  readonly objects: ReadonlyMap<string, JsonObject>;
}

const indexFile = 'index.json';
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Path of the n-th object (counted from 0) in the archive. */
export const objectFile = (n: number): string => `objects/${String(n).padStart(4, '0')}.json`;

/** Hex sha256 of an object as the index lists it. */
export const objectSha256 = (object: JsonObject): string => sha256Hex(canonicalJson(object));

/**
 * Bytes of the archive; the same payload gives the same bytes on every machine.
 * @throws TypeError when the index lists an object that is not there. All else is refused by the reader.
 */
export async function encodePayload(payload: Payload): Promise<Uint8Array> {
  const files: TarFile[] = [
    { path: indexFile, bytes: Buffer.from(canonicalJson(payload.index as unknown as JsonObject)) },
  ];
  for (const entry of allObjects(payload.index)) {
    const object = payload.objects.get(payloadObjectId(entry));
    if (object === undefined)
      throw new TypeError(`the payload lists ${payloadObjectId(entry)} but holds no such object`);
    files.push({ path: entry.file, bytes: Buffer.from(canonicalJson(object)) });
  }
  return gzipFixed(await packTar(files));
}

const allObjects = (index: PayloadIndex): PayloadObject[] => index.content.phases.flatMap((phase) => phase.objects);

const damaged = (message: string, more: Partial<Problem> = {}): Problem => ({
  reason: 'PayloadIntegrity',
  message,
  remedy: 'publish and deliver the release again',
  ...more,
});

/** Reads an archive and verifies everything but the signature: form, digests, listing and files. */
export async function decodePayload(archive: Uint8Array): Promise<Shaped<Payload>> {
  if (archive.byteLength > limits.archiveBytes)
    return { ok: false, problems: [damaged(`the archive is over ${limits.archiveBytes} bytes`)] };
  let files: TarFile[];
  try {
    files = await readPacked(archive, {
      maxFiles: limits.objects + 1,
      maxFileBytes: limits.indexBytes,
      maxTotalBytes: limits.unpackedBytes,
      maxRatio: 4_000,
    });
  } catch (error) {
    if (!(error instanceof UnsafeArchive)) throw error;
    return { ok: false, problems: [damaged(error.message)] };
  }
  return verifyFiles(new Map(files.map((file) => [file.path, file.bytes])), 'archive');
}

/**
 * The same verification for files read from elsewhere. An `archive` holds canonical JSON under `file`, a rendered
 * `tree` holds YAML under `yaml`; both lead to the same digests.
 */
export function verifyFiles(files: ReadonlyMap<string, Uint8Array>, form: 'archive' | 'tree'): Shaped<Payload> {
  const read = readIndex(files.get(indexFile));
  if (!read.ok) return read;
  const index = read.value;
  const problems = checkIndex(index);
  const objects = new Map<string, JsonObject>();
  const listed = new Set([indexFile]);
  for (const entry of allObjects(index)) {
    const file = form === 'archive' ? entry.file : entry.yaml;
    listed.add(file);
    const checked = checkObject(entry, file, files.get(file), form);
    if (checked.ok) objects.set(payloadObjectId(entry), checked.value);
    else problems.push(...checked.problems);
  }
  for (const file of files.keys())
    if (!listed.has(file)) problems.push(damaged('the file is not listed in the index', { file }));
  return problems.length > 0 ? { ok: false, problems } : { ok: true, value: { index, objects } };
}

const refused = (problem: Problem): { ok: false; problems: Problem[] } => ({ ok: false, problems: [problem] });

/** Form and version of an index; digests are checked together with the files. */
export function readIndex(bytes: Uint8Array | undefined): Shaped<PayloadIndex> {
  const at = { file: indexFile };
  if (bytes === undefined) return refused(damaged('the index is missing', at));
  if (bytes.byteLength > limits.indexBytes) return refused(damaged(`the index is over ${limits.indexBytes} bytes`, at));
  const raw = parseJson(textOf(bytes));
  if (!isObject(raw)) return refused(damaged('the index is not a JSON object', at));
  const version = raw.formatVersion;
  if (typeof version === 'number' && version > payloadFormatVersion)
    return refused({
      reason: 'ExecutorTooOld',
      message: `the payload has format ${version}; this executor reads up to ${payloadFormatVersion}`,
      file: indexFile,
      path: 'formatVersion',
      remedy: 'upgrade the executor first: deliver unit 10-system of the same commit',
    });
  return readShape(payloadIndex, raw, { reason: 'PayloadIntegrity', file: indexFile });
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

function parseJson(text: string | undefined): JsonValue | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as JsonValue);
  } catch {
    return undefined;
  }
}

/** Everything an index promises about itself. */
function checkIndex(index: PayloadIndex): Problem[] {
  const { content } = index;
  const problems: Problem[] = [];
  const say = (message: string, path: string): void => {
    problems.push(damaged(message, { file: indexFile, path }));
  };
  const found = payloadDigest(content);
  if (index.digest !== found) say(`digest is ${index.digest}, but the content has ${found}`, 'digest');
  const manifests = manifestDigest(content.phases);
  if (content.manifestDigest !== manifests)
    say(`manifestDigest is ${content.manifestDigest}, but the objects have ${manifests}`, 'content.manifestDigest');
  const objects = allObjects(index);
  if (objects.length === 0) say('the payload holds no object', 'content.phases');
  if (objects.length > limits.objects) say(`the payload holds over ${limits.objects} objects`, 'content.phases');
  for (const id of repeated(objects.map(payloadObjectId))) say(`${id} is listed more than once`, 'content.phases');
  for (const file of repeated(objects.map((o) => o.file)))
    say(`file ${file} is listed more than once`, 'content.phases');
  for (const file of repeated(objects.map((o) => o.yaml)))
    say(`file ${file} is listed more than once`, 'content.phases');
  for (const name of repeated(content.phases.map((p) => p.name))) say(`phase ${name} occurs twice`, 'content.phases');
  for (const dir of repeated(content.phases.map((p) => p.dir))) say(`folder ${dir} occurs twice`, 'content.phases');
  const order = new Map(content.phases.map((phase, n) => [phase.name, n]));
  for (const { from, to } of content.spans) {
    const [first, last] = [order.get(from), order.get(to)];
    if (first === undefined || last === undefined || first > last)
      say(`span ${from}..${to} does not name two phases in their order`, 'content.spans');
  }
  return problems;
}

function repeated(values: readonly string[]): string[] {
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const value of values) (seen.has(value) ? twice : seen).add(value);
  return [...twice];
}

function checkObject(
  entry: PayloadObject,
  file: string,
  bytes: Uint8Array | undefined,
  form: 'archive' | 'tree',
): Shaped<JsonObject> {
  const at = { file, object: payloadObjectId(entry) };
  if (bytes === undefined) return refused(damaged('the file is missing', at));
  if (bytes.byteLength > limits.objectBytes)
    return refused(damaged(`the file is over ${limits.objectBytes} bytes`, at));
  const found = form === 'archive' ? textOf(bytes) : undefined;
  const value = form === 'archive' ? parseJson(found) : parseOneYaml(bytes, file);
  if (!isObject(value)) return refused(damaged('the file does not hold one object', at));
  const text = canonical(value);
  if (text === undefined || (form === 'archive' && text !== found))
    return refused(damaged('the file is not canonical JSON', at));
  if (sha256Hex(text) !== entry.sha256)
    return refused(damaged('the file does not have the sha256 that the index lists', at));
  const metadata = isObject(value.metadata) ? value.metadata : {};
  const same =
    value.apiVersion === entry.apiVersion &&
    value.kind === entry.kind &&
    metadata.name === entry.name &&
    (metadata.namespace ?? undefined) === entry.namespace;
  if (!same) return refused(damaged('the file holds another object than the index lists', at));
  if (value.status !== undefined || metadata.creationTimestamp !== undefined)
    return refused(damaged('the object holds status or creationTimestamp', at));
  return { ok: true, value };
}

function parseOneYaml(bytes: Uint8Array, file: string): JsonValue | undefined {
  const { documents, problems } = parseYaml(new TextDecoder().decode(bytes), file);
  return problems.length === 0 && documents.length === 1 ? documents[0]?.value : undefined;
}

function canonical(value: JsonObject): string | undefined {
  try {
    return canonicalJson(value);
  } catch {
    return undefined;
  }
}
