import { createClient, type KubeClient } from '../../executor/kube/client.ts';
import { TransportError } from '../../executor/kube/transport.ts';
import { acquireLease } from '../../executor/lease/acquire.ts';
import { type HeldLease, LeaseLost } from '../../executor/lease/held.ts';
import { discoveryAnswer, type Scripted, scriptedTransport, statusOf } from './fakeTransport.ts';
import { seededRandom, VirtualClock } from './virtualClock.ts';

interface Stored {
  uid: string;
  version: number;
  spec: { holderIdentity?: string; leaseTransitions?: number; [key: string]: unknown };
}

/** A server of Leases in memory: versions, conflicts, and a network that delays, loses requests and loses replies. */
export class LeaseServer {
  readonly stored = new Map<string, Stored>();
  readonly clock: VirtualClock;
  readonly random: () => number;
  /** Shares of requests that get lost before and after their effect, and the longest delay each way. */
  loss = { before: 0, after: 0, delayMs: 0 };
  down = false;
  /** Every request is denied. */
  refusing = false;
  /** The method of which every reply gets lost. */
  deaf: string | undefined;
  writes = 0;
  #uids = 0;
  #versions = 0;

  constructor(clock: VirtualClock, random: () => number) {
    this.clock = clock;
    this.random = random;
  }

  client(life: { dead: boolean } = { dead: false }): KubeClient {
    const { transport } = scriptedTransport(async (request) => {
      const known = discoveryAnswer(request.path);
      if (known !== undefined) return known;
      const signal = request.signal;
      await this.clock.sleep(this.random() * this.loss.delayMs, signal);
      if (this.down || life.dead || this.random() < this.loss.before) throw new TransportError('lost on the way', true);
      const answer = this.serve(request.method, request.path.split('/').at(-1) ?? '', request.body);
      await this.clock.sleep(this.random() * this.loss.delayMs, signal);
      if (request.method === this.deaf || life.dead || this.random() < this.loss.after)
        throw new TransportError('the reply was lost', true);
      return answer;
    });
    return createClient({ transport, clock: this.clock, random: this.random });
  }

  serve(method: string, name: string, body: string | undefined): Scripted {
    if (this.refusing) return statusOf(403, 'Forbidden', 'x');
    const sent = body === undefined ? undefined : JSON.parse(body);
    const key = method === 'POST' ? sent.metadata.name : name;
    const known = this.stored.get(key);
    if (method === 'POST') {
      if (known !== undefined) return statusOf(409, 'AlreadyExists', 'x');
      return this.store(key, { uid: `uid-${++this.#uids}`, version: 0, spec: sent.spec }, 201);
    }
    if (known === undefined) return statusOf(404, 'NotFound', 'x', { name: key, kind: 'leases' });
    if (method === 'GET') return this.answer(key, known, 200);
    if (sent.metadata.resourceVersion !== String(known.version)) return statusOf(409, 'Conflict', 'modified');
    return this.store(key, { ...known, spec: sent.spec }, 200);
  }

  store(key: string, next: Stored, status: number): Scripted {
    this.writes += 1;
    const stored = { ...next, version: ++this.#versions };
    this.stored.set(key, stored);
    return this.answer(key, stored, status);
  }

  answer(name: string, { uid, version, spec }: Stored, status: number): Scripted {
    const metadata = { name, namespace: 'demo', uid, resourceVersion: String(version) };
    return { status, body: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec } };
  }

  options(holder: string, name = 'lease', life?: { dead: boolean }) {
    return { client: this.client(life), clock: this.clock, namespace: 'demo', name, holder, fieldManager: 'keelson' };
  }
}

export async function timed<T>(clock: VirtualClock, promise: Promise<T>, steps = 10_000): Promise<T> {
  let over = false;
  const settle = (): void => {
    over = true;
  };
  promise.then(settle, settle);
  for (let n = 0; n < steps && !over; n += 1) await clock.next();
  return promise;
}

export function bed(seed = 1): { clock: VirtualClock; server: LeaseServer; never: AbortSignal } {
  const clock = new VirtualClock();
  return { clock, server: new LeaseServer(clock, seededRandom(seed)), never: new AbortController().signal };
}

export async function acquired(server: LeaseServer, holder: string, name?: string): Promise<HeldLease> {
  const outcome = await timed(
    server.clock,
    acquireLease(server.options(holder, name), { signal: new AbortController().signal }),
  );
  if (outcome.type !== 'held') throw new Error(JSON.stringify(outcome));
  return outcome.lease;
}

export function lossOf(lease: HeldLease): string {
  try {
    lease.check();
    return 'held';
  } catch (error) {
    if (!(error instanceof LeaseLost)) throw error;
    return error.reason;
  }
}
