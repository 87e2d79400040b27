import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A user of the API server's static token file. */
export interface StaticUser {
  readonly name: string;
  readonly groups: readonly string[];
}

export const adminUser: StaticUser = { name: 'admin', groups: ['system:masters'] };

/** Users without any right until a test binds a role to them: user-1 to user-4, group keelson-test. */
export const plainUsers: readonly StaticUser[] = [1, 2, 3, 4].map((n) => ({
  name: `user-${n}`,
  groups: ['keelson-test'],
}));

/** Writes the static token file and returns each user's token. */
export async function writeTokens(file: string, users: readonly StaticUser[]): Promise<Record<string, string>> {
  const tokens = Object.fromEntries(users.map((user) => [user.name, randomBytes(24).toString('hex')]));
  const lines = users.map((user) => `${tokens[user.name]},${user.name},${user.name},"${user.groups.join(',')}"`);
  await writeFile(file, `${lines.join('\n')}\n`, { mode: 0o600 });
  return tokens;
}

/** Writes the key pair that signs and checks service account tokens. */
export async function writeServiceAccountKeys(directory: string): Promise<{ privateKey: string; publicKey: string }> {
  const pair = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'sec1', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  const [privateKey, publicKey] = [join(directory, 'sa.key'), join(directory, 'sa.pub')];
  await writeFile(privateKey, pair.privateKey, { mode: 0o600 });
  await writeFile(publicKey, pair.publicKey);
  return { privateKey, publicKey };
}

export interface KubeconfigInput {
  readonly url: string;
  /** PEM of the authority that signed the server's certificate; absent for plain http. */
  readonly ca?: string;
  readonly token: string;
  readonly namespace?: string;
}

/** The text of a client configuration file (JSON, which is YAML) with one context named `test`. */
export function kubeconfigText(input: KubeconfigInput): string {
  const cluster = {
    server: input.url,
    ...(input.ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(input.ca).toString('base64') }),
  };
  const context = {
    cluster: 'test',
    user: 'test',
    ...(input.namespace === undefined ? {} : { namespace: input.namespace }),
  };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster }],
    users: [{ name: 'test', user: { token: input.token } }],
    contexts: [{ name: 'test', context }],
    'current-context': 'test',
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}
