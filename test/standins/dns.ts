import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import { SocketAddress } from 'node:net';

/** A resolver on loopback that knows a few names; it stands in for the DNS of a cluster. */

export interface NameServer {
  /** `address:port`. */
  readonly address: string;
  /** Addresses by name; a name that is absent does not exist. Tests change it. */
  readonly names: Map<string, readonly string[]>;
  /** While true, nothing is answered. */
  silent: boolean;
  close(): Promise<void>;
}

const types = { A: 1, AAAA: 28 } as const;
const headerBytes = 12;

/** Name and type of the only question, and where it ends. */
function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = headerBytes;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += length + 1;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

/** The 16 groups or 4 octets of an address. */
function bytesOf(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail] = new SocketAddress({ address, family: 'ipv6' }).address.split('::');
  const words = (part: string | undefined): number[] =>
    part === undefined || part === '' ? [] : part.split(':').map((word) => Number.parseInt(word, 16));
  const [before, after] = [words(head), words(tail)];
  const all = [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
  return Buffer.from(all.flatMap((word) => [word >> 8, word & 0xff]));
}

function record(type: number, address: string): Buffer {
  const data = bytesOf(address);
  const fixed = Buffer.alloc(12);
  // The name stands at the start of the question.
  fixed.writeUInt16BE(0xc00c, 0);
  fixed.writeUInt16BE(type, 2);
  fixed.writeUInt16BE(1, 4);
  fixed.writeUInt32BE(0, 6);
  fixed.writeUInt16BE(data.length, 10);
  return Buffer.concat([fixed, data]);
}

function answerTo(query: Buffer, names: ReadonlyMap<string, readonly string[]>): Buffer {
  const { name, type, end } = questionOf(query);
  const known = names.get(name);
  const wanted = (known ?? []).filter((address) => address.includes(':') === (type === types.AAAA));
  const header = Buffer.alloc(headerBytes);
  query.copy(header, 0, 0, 2);
  // An answer of a resolver; 3 says that there is no such name.
  header.writeUInt16BE(0x8180 | (known === undefined ? 3 : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(wanted.length, 6);
  return Buffer.concat([header, query.subarray(headerBytes, end), ...wanted.map((address) => record(type, address))]);
}

export async function startNameServer(): Promise<NameServer> {
  const socket = createSocket('udp4');
  const server: NameServer = {
    address: '',
    names: new Map(),
    silent: false,
    async close() {
      const closed = once(socket, 'close');
      socket.close();
      await closed;
    },
  };
  socket.on('message', (query: Buffer, from: RemoteInfo) => {
    if (!server.silent) socket.send(answerTo(query, server.names), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return Object.assign(server, { address: `127.0.0.1:${socket.address().port}` });
}
