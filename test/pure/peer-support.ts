/** Databases of a hosted central behind real TLS on loopback, and the keys of a pair. */
import { generateKeyPairSync } from 'node:crypto';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import { type KeyPair, makeAuthority, makeExecutorPair, signPod } from '../../executor/pki/certificates.ts';

export const hour = 3_600_000;
export const validity = { from: Date.now() - hour, to: Date.now() + hour };

export const northdVersion = '25.03.1-20.41.0-78.8';

/** What a server of OVSDB answers to the questions here: its databases, how they stand, and what SB tells chassis. */
export function serve(databases: readonly string[], connected = true): (socket: Socket) => void {
  const rows = (all: readonly Record<string, unknown>[]) =>
    Object.fromEntries(all.map((one, n) => [`0000000${n}-0000-4000-8000-000000000000`, { new: one }]));
  const answers = (method: string, db: string): unknown => {
    if (method === 'list_dbs') return databases;
    if (db === '_Server') return { Database: rows(databases.map((name) => ({ name, connected }))) };
    return { SB_Global: rows([{ options: ['map', [['northd_internal_version', northdVersion]]] }]) };
  };
  return (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      const { id, method, params } = JSON.parse(chunk.toString()) as { id: number; method: string; params: string[] };
      socket.write(JSON.stringify({ id, result: answers(method, params[0] ?? ''), error: null }));
    });
  };
}

interface Halves {
  readonly authority: KeyPair;
  readonly other: KeyPair;
  readonly client: KeyPair;
  readonly servers: readonly Server[];
  readonly northbound: string;
  readonly southbound: string;
}

export async function listening(server: Server): Promise<string> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export async function makeHalves(): Promise<Halves> {
  const authority = await makeAuthority('ovn', validity);
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const cert = await signPod({
    authority,
    publicKey: keys.publicKey.export({ type: 'spki', format: 'der' }),
    identity: { namespace: 'hosted', pod: 'ovn-central-0', podUID: 'uid', node: 'n1' },
    addresses: ['127.0.0.1'],
    validity,
  });
  const key = keys.privateKey.export({ type: 'pkcs8', format: 'pem' });
  const tls = { ca: authority.certificate, cert, key, requestCert: true, rejectUnauthorized: true };
  const servers = [['OVN_Northbound', '_Server'], ['OVN_Southbound']].map((names) =>
    createSecureServer(tls, serve(names)).on('tlsClientError', () => undefined),
  );
  const [northbound = '', southbound = ''] = await Promise.all(servers.map(listening));
  return {
    authority,
    other: await makeAuthority('another', validity),
    client: await makeExecutorPair(authority, validity),
    servers,
    northbound: `ssl:${northbound}`,
    southbound: `ssl:${southbound}`,
  };
}

/** A Secret's data for such a pair, as text. */
export const pairKeys = ({ authority, client }: Pick<Halves, 'authority' | 'client'>): Record<string, string> => ({
  cacert: authority.certificate,
  cert: client.certificate,
  key: client.key,
});

/** The lines of a PEM text that nobody may repeat, plain and as the API carries them. */
export function tracesOf(secret: string): string[] {
  const lines = secret.split('\n').filter((line) => line.length > 12 && !line.startsWith('-----'));
  return lines.flatMap((line) => [line, Buffer.from(line).toString('base64').slice(4, -4)]);
}

export const closeAll = (servers: readonly Server[]): Promise<unknown> =>
  Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
