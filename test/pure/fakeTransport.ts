import type { Transport, TransportRequest, TransportResponse } from '../../executor/kube/transport.ts';

/** What a scripted server answers: a status with a JSON or text body, in the chunks given. */
export interface Scripted {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** A body of its own, for streams. */
  readonly stream?: AsyncIterable<Uint8Array>;
}

async function* once(body: unknown): AsyncGenerator<Uint8Array> {
  yield Buffer.from(typeof body === 'string' ? body : JSON.stringify(body ?? {}));
}

/** A transport that answers from a function and remembers what it was asked. */
export function scriptedTransport(answer: (request: TransportRequest, count: number) => Scripted | Promise<Scripted>): {
  readonly transport: Transport;
  readonly requests: TransportRequest[];
} {
  const requests: TransportRequest[] = [];
  return {
    requests,
    async transport(request): Promise<TransportResponse> {
      request.signal?.throwIfAborted();
      requests.push(request);
      const { status, headers = {}, body, stream } = await answer(request, requests.length);
      return { status, headers, body: stream ?? once(body) };
    },
  };
}

/** Discovery answers for the kinds that the tests use; undefined for other paths. */
export function discoveryAnswer(path: string): Scripted | undefined {
  const list = (resources: readonly object[]): Scripted => ({
    status: 200,
    body: { kind: 'APIResourceList', resources },
  });
  const verbs = ['get', 'list', 'watch', 'patch', 'delete'];
  if (path === '/api/v1')
    return list([
      { name: 'configmaps', kind: 'ConfigMap', namespaced: true, verbs },
      { name: 'secrets', kind: 'Secret', namespaced: true, verbs },
      { name: 'namespaces', kind: 'Namespace', namespaced: false, verbs },
    ]);
  if (path === '/apis/apps/v1')
    return list([
      { name: 'deployments', kind: 'Deployment', namespaced: true, verbs },
      { name: 'deployments/status', kind: 'Deployment', namespaced: true, verbs: ['get', 'patch'] },
    ]);
  if (path === '/apis/coordination.k8s.io/v1')
    return list([{ name: 'leases', kind: 'Lease', namespaced: true, verbs }]);
  if (path === '/apis/events.k8s.io/v1') return list([{ name: 'events', kind: 'Event', namespaced: true, verbs }]);
  return undefined;
}

/** A Status as the API server sends it. */
export function statusOf(code: number, reason: string, message: string, details: object = {}): Scripted {
  return {
    status: code,
    body: { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message, details },
  };
}
