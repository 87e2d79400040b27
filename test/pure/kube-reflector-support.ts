import * as assert from 'uvu/assert';
import { createClient } from '../../executor/kube/client.ts';
import { Reflector, type ReflectorEvent, type ReflectorProblem } from '../../executor/kube/reflector.ts';
import type { ReflectorTimings } from '../../executor/kube/reflector-timings.ts';
import type { TransportRequest } from '../../executor/kube/transport.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { discoveryAnswer, type Scripted, scriptedTransport } from './fakeTransport.ts';
import { seededRandom, settled, VirtualClock } from './virtualClock.ts';

export function object(name: string, version: number, uid = `uid-${name}`): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'demo', uid, resourceVersion: String(version) },
  };
}

export function line(type: string, subject: KubeObject | object): string {
  return `${JSON.stringify({ type, object: subject })}\n`;
}

export function listOf(version: number, ...items: KubeObject[]): Scripted {
  return { status: 200, body: { metadata: { resourceVersion: String(version) }, items } };
}

/** A watch that the test feeds. It ends like a real one when its request is aborted. */
export class Stream {
  readonly #chunks: Uint8Array[] = [];
  #ended = false;
  #wake: () => void = () => undefined;
  closed = false;

  push(text: string): void {
    this.#chunks.push(Buffer.from(text));
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *body(signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    const wake = (): void => this.#wake();
    signal?.addEventListener('abort', wake);
    try {
      for (;;) {
        signal?.throwIfAborted();
        const chunk = this.#chunks.shift();
        if (chunk !== undefined) yield chunk;
        else if (this.#ended) return;
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
      }
    } finally {
      this.closed = true;
      signal?.removeEventListener('abort', wake);
    }
  }
}

interface Bed {
  readonly clock: VirtualClock;
  readonly reflector: Reflector;
  readonly events: string[];
  readonly problems: ReflectorProblem[];
  readonly requests: TransportRequest[];
  readonly streams: Stream[];
  stop(): Promise<void>;
}

interface Script {
  readonly list: (count: number) => Scripted;
  /** A refusal of the n-th watch in place of a stream. */
  readonly watch?: (count: number) => Scripted | undefined;
  readonly handler?: (event: ReflectorEvent) => void;
  readonly timings?: Partial<ReflectorTimings>;
}

function tell(event: ReflectorEvent): string {
  return event.type === 'synced'
    ? 'synced'
    : `${event.type} ${event.object.metadata.name} ${event.object.metadata.uid} ${event.object.metadata.resourceVersion}`;
}

export async function bed(script: Script): Promise<Bed> {
  const clock = new VirtualClock();
  const events: string[] = [];
  const problems: ReflectorProblem[] = [];
  const streams: Stream[] = [];
  const counts = { list: 0, watch: 0 };
  const { transport, requests } = scriptedTransport((request) => {
    const known = discoveryAnswer(request.path);
    if (known !== undefined) return known;
    if (request.query.watch !== 'true') return script.list(++counts.list);
    const refused = script.watch?.(++counts.watch);
    if (refused !== undefined) return refused;
    const stream = new Stream();
    streams.push(stream);
    return { status: 200, stream: stream.body(request.signal) };
  });
  const reflector = new Reflector({
    client: createClient({ transport, clock, random: seededRandom(1) }),
    selection: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo' },
    clock,
    random: () => 0.5,
    handler: (event) => {
      events.push(tell(event));
      script.handler?.(event);
    },
    onProblem: (problem) => problems.push(problem),
    timings: { backoff: { initialMs: 100, factor: 2, maxMs: 1600, jitter: 0 }, ...script.timings },
  });
  const stop = new AbortController();
  const running = reflector.run(stop.signal);
  await settled();
  await settled();
  return {
    ...{ clock, reflector, events, problems, requests, streams },
    async stop() {
      stop.abort();
      await running;
      await settled();
      assert.is(clock.sleeping, 0, 'a timer was left');
      assert.ok(
        streams.every((stream) => stream.closed),
        'a stream was left open',
      );
    },
  };
}

export const watches = (requests: readonly TransportRequest[]): TransportRequest[] =>
  requests.filter(({ query }) => query.watch === 'true');
export const lists = (requests: readonly TransportRequest[]): number =>
  requests.filter(({ query }) => query.limit !== undefined).length;
