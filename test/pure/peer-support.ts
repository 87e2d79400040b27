/** Databases of a hosted central behind real TLS on loopback, and the keys of a pair. */
import { generateKeyPairSync } from 'node:crypto';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import { type KeyPair, makeAuthority, makeExecutorPair, signPod } from '../../executor/pki/certificates.ts';

export const hour = 3_600_000;
export const validity = { from: Date.now() - hour, to: Date.now() + hour };

/** What a server of OVSDB answers to the only question here. */
export function serve(databases: readonly string[]): (socket: Socket) => void {
  return (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      const { id } = JSON.parse(chunk.toString()) as { id: number };
      socket.write(JSON.stringify({ id, result: databases, error: null }));
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
