import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import { run } from '../process/run.ts';
import { credentialNames } from './reference.ts';

/** How to identify to a registry. Held in memory for one run; never written, never told. */
export type Credential =
  | { readonly kind: 'password'; readonly username: string; readonly password: string }
  /** An OAuth2 refresh token, to be exchanged at the token service. */
  | { readonly kind: 'identityToken'; readonly token: string }
  /** A bearer token for the registry itself. */
  | { readonly kind: 'registryToken'; readonly token: string };

export type CredentialOutcome =
  | { readonly kind: 'found'; readonly credential: Credential }
  | { readonly kind: 'none' }
  /** There should be a credential, and it cannot be read; the message holds no secret. */
  | { readonly kind: 'failed'; readonly message: string };

export interface CredentialStore {
  /** The credential for a registry, by the name that references use. */
  get(registry: string, signal?: AbortSignal): Promise<CredentialOutcome>;
}

/** Every registry is asked anonymously. */
export const anonymous: CredentialStore = { get: () => Promise.resolve({ kind: 'none' }) };

export interface DockerCredentialOptions {
  /** Docker or Helm registry configuration files, the first that knows a registry wins; missing ones are skipped. */
  readonly configFiles: readonly string[];
  /** Environment of `docker-credential-*` helpers; `PATH` is where they are looked for. */
  readonly helperEnv: Readonly<Record<string, string>>;
  readonly helperLimitMs?: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The configuration files that Docker and Helm would read in this environment; entry points call this once. */
export function registryConfigFiles(environment: Environment): string[] {
  const home = environment.HOME;
  const docker = environment.DOCKER_CONFIG ?? (home === undefined ? undefined : join(home, '.docker'));
  const helmHome = environment.HELM_CONFIG_HOME ?? (home === undefined ? undefined : join(home, '.config', 'helm'));
  const helm =
    environment.HELM_REGISTRY_CONFIG ??
    (helmHome === undefined ? undefined : join(helmHome, 'registry', 'config.json'));
  return [...(docker === undefined ? [] : [join(docker, 'config.json')]), ...(helm === undefined ? [] : [helm])];
}

/** What credential helpers need of an environment: where programs are, whose home it is, and the session's sockets. */
export function helperEnvironment(environment: Environment): Record<string, string> {
  const names = [
    'PATH',
    'HOME',
    'XDG_RUNTIME_DIR',
    'XDG_CONFIG_HOME',
    'DBUS_SESSION_BUS_ADDRESS',
    'GNUPGHOME',
    'DOCKER_CONFIG',
  ];
  const kept = names.map((name) => [name, environment[name]] as const);
  return Object.fromEntries(kept.filter((entry): entry is readonly [string, string] => entry[1] !== undefined));
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A credential of a user name and a secret; the user name `<token>` marks an identity token. */
function fromPair(username: string | undefined, secret: string | undefined): Credential | undefined {
  if (secret === undefined) return undefined;
  if (username === '<token>') return { kind: 'identityToken', token: secret };
  return username === undefined ? undefined : { kind: 'password', username, password: secret };
}

function fromEntry(entry: JsonObject): Credential | undefined {
  const identity = textOf(entry.identitytoken);
  if (identity !== undefined) return { kind: 'identityToken', token: identity };
  const bearer = textOf(entry.registrytoken);
  if (bearer !== undefined) return { kind: 'registryToken', token: bearer };
  const packed = textOf(entry.auth);
  if (packed !== undefined) {
    const plain = Buffer.from(packed, 'base64').toString('utf8');
    const colon = plain.indexOf(':');
    return colon <= 0 ? undefined : fromPair(plain.slice(0, colon), textOf(plain.slice(colon + 1)));
  }
  return fromPair(textOf(entry.username), textOf(entry.password));
}

/** `host[:port]` of a key that may be written as a URL. */
function keyHost(key: string): string {
  return key.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
}

function entryFor(auths: JsonObject, names: readonly string[]): JsonObject | undefined {
  for (const name of names) if (isObject(auths[name])) return auths[name];
  const hosts = new Set(names.map(keyHost));
  const key = Object.keys(auths).find((candidate) => hosts.has(keyHost(candidate)));
  const entry = key === undefined ? undefined : auths[key];
  return isObject(entry) ? entry : undefined;
}

/** Parsed configuration, `undefined` when the file does not exist, or a message. */
async function readConfig(file: string): Promise<JsonObject | string | undefined> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    return code === 'ENOENT' || code === 'ENOTDIR' ? undefined : `${file} cannot be read (${code ?? 'unknown error'})`;
  }
  try {
    const parsed: unknown = JSON.parse(text);
    return isObject(parsed) ? parsed : `${file} is not a JSON object`;
  } catch {
    // The parser's message quotes the file, which holds secrets.
    return `${file} is not valid JSON`;
  }
}

async function askHelper(
  helper: string,
  server: string,
  options: DockerCredentialOptions,
  signal: AbortSignal | undefined,
): Promise<CredentialOutcome> {
  const program = `docker-credential-${helper}`;
  if (!/^[A-Za-z0-9._-]+$/.test(helper))
    return { kind: 'failed', message: 'the name of the credential helper is not a plain word' };
  const outcome = await run({
    program,
    args: ['get'],
    env: options.helperEnv,
    input: server,
    limitMs: options.helperLimitMs ?? 15_000,
    maxBytes: 64 * 1024,
    ...(signal === undefined ? {} : { signal }),
  });
  if (outcome.kind === 'notStarted')
    return { kind: 'failed', message: `${program} cannot be started (${outcome.code})` };
  if (outcome.kind === 'stopped') return { kind: 'failed', message: `${program}: ${outcome.message}` };
  if (outcome.code !== 0) {
    const said = `${outcome.stdout}${outcome.stderr}`.trim();
    if (/credentials not found/i.test(said)) return { kind: 'none' };
    // What it wrote may be the secret itself, in a form that nobody could know.
    return { kind: 'failed', message: `${program} ended with ${outcome.code}; run it by hand to see why` };
  }
  let answer: unknown;
  try {
    answer = JSON.parse(outcome.stdout);
  } catch {
    return { kind: 'failed', message: `${program} did not answer JSON` };
  }
  const credential = isObject(answer) ? fromPair(textOf(answer.Username), textOf(answer.Secret)) : undefined;
  return credential === undefined ? { kind: 'none' } : { kind: 'found', credential };
}

function helperFor(config: JsonObject, names: readonly string[]): string | undefined {
  const perHost = isObject(config.credHelpers) ? config.credHelpers : {};
  for (const name of names) {
    const helper = textOf(perHost[name]);
    if (helper !== undefined) return helper;
  }
  return textOf(config.credsStore);
}

/** The existing Docker and Helm credential stores, read only. Files are read once, helpers asked once per registry. */
export function dockerCredentials(options: DockerCredentialOptions): CredentialStore {
  const answers = new Map<string, Promise<CredentialOutcome>>();
  const configs = new Map<string, ReturnType<typeof readConfig>>();

  async function fromConfig(config: JsonObject, registry: string, signal?: AbortSignal): Promise<CredentialOutcome> {
    const names = credentialNames(registry);
    const helper = helperFor(config, names);
    if (helper !== undefined) {
      const outcome = await askHelper(helper, names[0] ?? registry, options, signal);
      if (outcome.kind !== 'none') return outcome;
    }
    const entry = isObject(config.auths) ? entryFor(config.auths, names) : undefined;
    const credential = entry === undefined ? undefined : fromEntry(entry);
    return credential === undefined ? { kind: 'none' } : { kind: 'found', credential };
  }

  async function look(registry: string, signal?: AbortSignal): Promise<CredentialOutcome> {
    for (const file of options.configFiles) {
      const reading = configs.get(file) ?? readConfig(file);
      configs.set(file, reading);
      const config = await reading;
      if (config === undefined) continue;
      if (typeof config === 'string') return { kind: 'failed', message: config };
      const outcome = await fromConfig(config, registry, signal);
      if (outcome.kind !== 'none') return outcome;
    }
    return { kind: 'none' };
  }

  return {
    get(registry, signal) {
      const known = answers.get(registry);
      if (known !== undefined) return known;
      const asked = look(registry, signal);
      answers.set(registry, asked);
      // A cancelled question has no answer worth keeping.
      asked.catch(() => answers.delete(registry));
      return asked;
    },
  };
}
