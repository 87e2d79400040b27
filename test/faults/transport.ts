import { setTimeout as delay } from 'node:timers/promises';
import {
  discard,
  type Transport,
  TransportError,
  type TransportRequest,
  type TransportResponse,
} from '../../executor/kube/transport.ts';
import { type Fault, type FaultPlan, injectedAnswer } from './plan.ts';
import { describeRequest, type KubeRequest } from './request.ts';
import { BodyCut, shapeBody } from './stream.ts';

/** What a request of the client asks of the API server. */
export function requestOf(request: TransportRequest): KubeRequest {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request.query)) if (value !== undefined) query.append(name, value);
  return describeRequest(request.method, `${request.path}?${query}`, request.headers['content-type'], request.body);
}

/** A transport of the Kubernetes client with the plan's faults, counts and refusal of force between it and `inner`. */
export function faultTransport(inner: Transport, plan: FaultPlan): Transport {
  return async (request) => {
    const { record, fault } = plan.admit(requestOf(request));
    const response = await carryOut(inner, request, fault, plan);
    record.status = response.status;
    return { ...response, body: shaped(response, fault, plan.cleared) };
  };
}

async function carryOut(
  inner: Transport,
  request: TransportRequest,
  fault: Fault | undefined,
  plan: FaultPlan,
): Promise<TransportResponse> {
  const { signal } = request;
  switch (fault?.kind) {
    case 'dropBefore':
      throw new TransportError('injected by the test: the connection broke before the request', true);
    case 'dropAfter':
      await discard(await inner(request));
      throw new TransportError('injected by the test: the reply was lost', true);
    case 'hang':
      return hang(request, plan.cleared);
    case 'status':
      return { ...injectedAnswer(fault), body: once(injectedAnswer(fault).body) };
    case 'delay': {
      const wait = (): Promise<void> => delay(fault.ms, undefined, signal === undefined ? {} : { signal });
      if (fault.when !== 'after') await wait();
      const response = await inner(request);
      if (fault.when === 'after') await wait();
      return response;
    }
    default:
      return inner(request);
  }
}

/** No answer comes: the request ends at its own limit, when the plan is cleared, or when the caller gives up. */
function hang(request: TransportRequest, cleared: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const lost = (): void => end(new TransportError('injected by the test: no answer came', true));
    const aborted = (): void => end(request.signal?.reason);
    const timer = setTimeout(lost, request.timeoutMs);
    const end = (reason: unknown): void => {
      clearTimeout(timer);
      cleared.removeEventListener('abort', lost);
      request.signal?.removeEventListener('abort', aborted);
      reject(reason);
    };
    cleared.addEventListener('abort', lost, { once: true });
    request.signal?.addEventListener('abort', aborted, { once: true });
  });
}

async function* once(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

async function* shaped(
  response: TransportResponse,
  fault: Fault | undefined,
  cleared: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* shapeBody(response.body, fault, cleared);
  } catch (error) {
    if (error instanceof BodyCut) throw new TransportError(`injected by the test: ${error.message}`, true);
    throw error;
  }
}
