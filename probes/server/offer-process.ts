import { spawn } from 'node:child_process';
import type { PodIdentity } from '../../constructs/api/evidence/identity.ts';
import type { Offer } from './offer.ts';

/** What the process that makes an offer is told on its standard input. */
export interface OfferOrder {
  readonly identity: PodIdentity;
  readonly addresses: readonly string[];
}

const limits = { ms: 60_000, bytes: 64 * 1024 } as const;

/**
 * Has a process of its own make the key: what it needs for that is 10 MiB which this one would keep. The key comes back
 * through a pipe and is written nowhere.
 * @throws Error that says how the process ended, and nothing that it printed.
 */
export function offerFromProcess(program: readonly [string, ...string[]], order: OfferOrder): Promise<Offer> {
  return new Promise((resolve, reject) => {
    const [file, ...args] = program;
    const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'ignore'], env: {}, timeout: limits.ms });
    const chunks: Buffer[] = [];
    let bytes = 0;
    child.once('error', (error: NodeJS.ErrnoException) => reject(new Error(`a key can not be made: ${error.code}`)));
    child.stdin.on('error', () => undefined);
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.byteLength;
      if (bytes > limits.bytes) child.kill('SIGKILL');
      else chunks.push(chunk);
    });
    child.once('close', (code, signal) => {
      const offer = code === 0 ? readOffer(Buffer.concat(chunks).toString('utf8')) : undefined;
      if (offer === undefined) reject(new Error(`a key can not be made: the process ended with ${code ?? signal}`));
      else resolve(offer);
    });
    child.stdin.end(JSON.stringify(order));
  });
}

function readOffer(text: string): Offer | undefined {
  try {
    const { key, csr, selfSigned } = JSON.parse(text) as Partial<Record<keyof Offer, unknown>>;
    if (typeof key !== 'string' || typeof csr !== 'string' || typeof selfSigned !== 'string') return undefined;
    return { key, csr, selfSigned };
  } catch {
    return undefined;
  }
}
