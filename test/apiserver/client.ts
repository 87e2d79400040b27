import { setTimeout as delay } from 'node:timers/promises';
import { Agent, fetch } from 'undici';

export interface Endpoint {
  readonly url: string;
  /** PEM of the server's authority; absent for plain http. */
  readonly ca?: string;
  readonly token: string;
}

export interface RequestInput {
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** The content type of the body; JSON by default. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface Reply {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  // Test set-up code reads replies loosely; the product's client has typed outcomes.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  readonly body: any;
}

/** A raw client of the API server for what tests set up and look at; the code under test has its own. */
export interface AdminClient {
  /** Any answer of the server is a reply; only a broken connection throws. */
  request(method: string, path: string, input?: RequestInput): Promise<Reply>;
  /** Like request, but an answer other than 2xx throws with the server's message. */
  expect(method: string, path: string, input?: RequestInput): Promise<Reply>;
  close(): Promise<void>;
}

export function adminClient(endpoint: Endpoint): AdminClient {
  const connect = endpoint.ca === undefined ? {} : { connect: { ca: endpoint.ca } };
  const dispatcher = new Agent({ ...connect, connections: 16 });
  async function request(method: string, path: string, input: RequestInput = {}): Promise<Reply> {
    const url = new URL(path, endpoint.url);
    for (const [key, value] of Object.entries(input.query ?? {})) url.searchParams.set(key, value);
    const response = await fetch(url, {
      method,
      dispatcher,
      headers: {
        authorization: `Bearer ${endpoint.token}`,
        accept: 'application/json',
        'user-agent': 'test-setup',
        ...(input.body === undefined ? {} : { 'content-type': input.type ?? 'application/json' }),
        ...input.headers,
      },
      ...(input.body === undefined ? {} : { body: JSON.stringify(input.body) }),
      signal: input.signal ?? AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    return { status: response.status, headers: new Map(response.headers), body: parse(text) };
  }
  return {
    request,
    async expect(method, path, input) {
      const reply = await request(method, path, input);
      if (reply.status >= 200 && reply.status < 300) return reply;
      throw new Error(`${method} ${path}: ${reply.status} ${reply.body?.message ?? reply.body}`);
    },
    close: () => dispatcher.destroy(),
  };
}

/** JSON as what it means, anything else (also the lines of a watch) as text. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Asks until `/readyz` answers 200. @throws after `limitMs` with what was seen last, or when `alive` throws. */
export async function untilReady(client: AdminClient, limitMs: number, alive: () => void): Promise<void> {
  const deadline = performance.now() + limitMs;
  let last = 'no answer';
  while (performance.now() < deadline) {
    alive();
    try {
      const reply = await client.request('GET', '/readyz', { signal: AbortSignal.timeout(5000) });
      if (reply.status === 200) return;
      last = `${reply.status} ${String(reply.body).slice(0, 500)}`;
    } catch (error) {
      last = error instanceof Error ? `${error.message} ${String(error.cause ?? '')}` : String(error);
    }
    await delay(50);
  }
  throw new Error(`the API server was not ready after ${limitMs} ms; last seen: ${last}`);
}
