import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { bundleInParts } from '../../images/bundle.ts';
import type { ApiServer } from '../apiserver/server.ts';
import { type TiedDirectory, tiedDirectory } from '../tools/directory.ts';
import { exited, run, spawnTied } from '../tools/process.ts';

/** One secret in all the forms in which it can reach a program. */
export interface Canary {
  readonly value: string;
  readonly base64: string;
  /** A URL with it as password. */
  readonly url: string;
  readonly bearer: string;
  /** The value of a docker configuration's `auth`. */
  readonly auth: string;
  readonly dockerConfig: string;
  /** What an unfriendly server says about a request, everything above in one line, each where such a thing stands. */
  readonly chatter: string;
  /** Whether a text holds it, plain or in base64 at any offset. */
  foundIn(text: string | Uint8Array): boolean;
}

export function makeCanary(): Canary {
  const value = `Canary${randomBytes(12).toString('hex')}`;
  const base64 = Buffer.from(value).toString('base64');
  const auth = Buffer.from(`bot:${value}`).toString('base64');
  const dockerConfig = JSON.stringify({ auths: { 'registry.example.com': { auth } } });
  const url = `https://bot:${value}@db.example.com/prod`;
  const encoded = [value, auth].flatMap((text) => [0, 1, 2].map((offset) => inBase64(text, offset)));
  const needles = [value, Buffer.from(value).toString('hex'), ...encoded];
  return {
    value,
    base64,
    url,
    bearer: `Bearer ${value}`,
    auth,
    dockerConfig,
    chatter: [
      `authorization: Basic ${auth}`,
      `Authorization: Bearer ${value}`,
      `login to ${url} failed`,
      `GET /?token=${value}&x=1`,
      `password=${value}`,
      dockerConfig,
      JSON.stringify({ password: value }),
    ].join('; '),
    foundIn(text) {
      const bytes =
        typeof text === 'string' ? Buffer.from(text) : Buffer.from(text.buffer, text.byteOffset, text.length);
      return needles.some((needle) => bytes.includes(needle));
    },
  };
}

/** The characters of the base64 form that depend on the value alone when `offset` bytes stand before it. */
function inBase64(value: string, offset: number): string {
  const text = Buffer.from(`${'x'.repeat(offset)}${value}`).toString('base64');
  return text.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + value.length) * 8) / 6));
}

/** Documents that nobody should commit, one file each, and the reasons that they must be refused for. */
export const secretsInGit = ({ value, base64 }: Canary): Record<string, string> => ({
  'string-data': `stringData: {password: ${value}}`,
  data: `data: {password: ${base64}}`,
  twice: `stringData:\n  password: ${value}\n  password: ${value}`,
  unterminated: `stringData:\n  password: "${value}`,
  alias: `stringData:\n  password: *${value}`,
  tag: `stringData:\n  password: !${value} x`,
  directive: `stringData:\n  password: @${value}`,
  key: `stringData:\n  password: ${value}\n ${value}: [`,
  colon: `stringData:\n  password: a: ${value}`,
  block: `stringData:\n  password: | ${value}\n    x`,
  escape: `stringData:\n  password: "\\q${value}"`,
  anchor: `stringData:\n  password: &${value} &${value} x`,
  kind: `stringData: ${value}`,
  list: `data: [${value}]`,
  'last-applied': `metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":{"password":"${base64}"}}'}}`,
});

export interface Said {
  readonly code: number | null;
  readonly text: string;
}

/** A process that is still running. */
export interface Running {
  /** Everything that it wrote so far. */
  text(): Promise<string>;
  stop(): Promise<Said>;
}

/** Folders and processes of one sweep; what any of its processes wrote is kept. */
export interface Sweep {
  readonly path: (...parts: string[]) => string;
  readonly env: Readonly<Record<string, string>>;
  write(path: string, text: string, mode?: number): Promise<string>;
  keelson(args: readonly string[], env?: Record<string, string>): Promise<Said>;
  start(args: readonly string[]): Running;
  /** Where the canary is, among everything that processes wrote. */
  outputs(): string[];
  /** Where the canary is, among files below these folders. */
  files(...folders: string[]): Promise<string[]>;
  /** Where the canary is, among all objects of a Git repository. */
  repository(folder: string): Promise<string[]>;
  /** Where the canary is, among all objects of the API server. */
  cluster(server: ApiServer): Promise<string[]>;
  close(): Promise<void>;
}

const entry = join(import.meta.dirname, '../../bin/keelson.ts');

export async function openSweep(canary: Canary, more: Record<string, string>): Promise<Sweep> {
  const directory: TiedDirectory = await tiedDirectory('keelson-canary-');
  const path = (...parts: string[]): string => join(directory.path, ...parts);
  for (const folder of ['home', 'tmp', 'cache', 'logs']) await mkdir(path(folder));
  const env = {
    ...more,
    PATH: `${path('home')}:${process.env.PATH ?? ''}`,
    HOME: path('home'),
    TMPDIR: path('tmp'),
    KEELSON_CACHE: path('cache'),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: path('home', 'gitconfig'),
    // A person who looks for a fault in the network sets these; their output must not come through.
    GIT_TRACE: '1',
    GIT_TRACE_CURL: '1',
    GIT_CURL_VERBOSE: '1',
  };
  // The bundle is what people run, and it starts faster than its sources.
  await bundleInParts(entry, path('program'));
  const program = path('program', 'keelson.mjs');
  const said: { what: string; text: string }[] = [];
  return {
    path,
    env,
    async write(name, text, mode = 0o600) {
      const file = path(name);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text, { mode });
      return file;
    },
    async keelson(args, extra = {}) {
      const options = { cwd: path(), env: { ...env, ...extra }, limitMs: 120_000 };
      const result = await run(process.execPath, [program, ...args], options);
      const text = `${result.stdout}${result.stderr}`;
      said.push({ what: `keelson ${args.join(' ')}`, text });
      return { code: result.code, text };
    },
    start(args) {
      const file = path('logs', `${randomBytes(4).toString('hex')}.log`);
      const log = createWriteStream(file);
      const child = spawnTied(process.execPath, [program, ...args], {
        cwd: path(),
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      child.stdout?.pipe(log, { end: false });
      child.stderr?.pipe(log, { end: false });
      const text = (): Promise<string> => readFile(file, 'utf8').catch(() => '');
      return {
        text,
        async stop() {
          child.kill('SIGTERM');
          const { code } = await exited(child);
          await new Promise<void>((resolve) => log.end(() => resolve()));
          said.push({ what: `keelson ${args.join(' ')}`, text: await text() });
          return { code, text: await text() };
        },
      };
    },
    outputs: () =>
      said.filter(({ text }) => canary.foundIn(text)).map(({ what, text }) => `${what}: ${lineOf(canary, text)}`),
    async files(...folders) {
      const found: string[] = [];
      for (const folder of folders)
        for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
          const file = join(entry.parentPath, entry.name);
          if (canary.foundIn(file) || (entry.isFile() && canary.foundIn(await readFile(file)))) found.push(file);
        }
      return found;
    },
    async repository(folder) {
      const git = (...args: string[]) => run('git', args, { cwd: folder, env, limitMs: 60_000 });
      const ids = (await git('cat-file', '--batch-all-objects', '--batch-check=%(objectname) %(objecttype)')).stdout;
      const found: string[] = [];
      for (const [id = '', type = ''] of ids
        .trim()
        .split('\n')
        .map((line) => line.split(' ')))
        if (canary.foundIn((await git('cat-file', type === 'tree' ? '-p' : type, id)).stdout))
          found.push(`${type} ${id}`);
      const refs = await git('for-each-ref');
      return [...found, ...(canary.foundIn(refs.stdout) ? ['a ref'] : [])];
    },
    cluster: (server) => searchCluster(canary, server),
    close: () => directory.remove(),
  };
}

/** The line in which a text gives the canary away. */
function lineOf(canary: Canary, text: string): string {
  return (text.split('\n').find((line) => canary.foundIn(line)) ?? '').slice(0, 600);
}

/** Every object that the server lists, of every kind, as `kind namespace/name`. */
async function searchCluster(canary: Canary, { admin }: ApiServer): Promise<string[]> {
  const { body: groups } = await admin.expect('GET', '/apis');
  const versions: string[] = groups.groups.map(
    (group: { preferredVersion: { groupVersion: string } }) => group.preferredVersion.groupVersion,
  );
  const found: string[] = [];
  for (const base of ['/api/v1', ...versions.map((version) => `/apis/${version}`)]) {
    const { body } = await admin.expect('GET', base);
    for (const { name, verbs } of body.resources) {
      if (!verbs.includes('list') || name.includes('/')) continue;
      const reply = await admin.request('GET', `${base}/${name}`);
      for (const item of reply.body?.items ?? [])
        if (canary.foundIn(JSON.stringify(item)))
          found.push(`${name} ${item.metadata.namespace ?? ''}/${item.metadata.name}`);
    }
  }
  return found.sort();
}
