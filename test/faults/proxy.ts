import { readFileSync } from 'node:fs';
import { createServer as createHttp, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttps, Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { ApiServerHandle } from '../apiserver/server.ts';
import { type Fault, FaultPlan, injectedAnswer, type RequestRecord, violationsVariable } from './plan.ts';
import { describeRequest } from './request.ts';
import { BodyCut, shapeBody } from './stream.ts';

export interface FaultProxyOptions {
  /** Speak plain http to the client; TLS with the server's own certificate by default. */
  readonly plain?: boolean;
  /** Where violations are written; by default the file that the runner named. */
  readonly violationsFile?: string | undefined;
}

export interface FaultProxy {
  readonly url: string;
  readonly plan: FaultPlan;
  /** Breaks every open connection of the clients. */
  cutConnections(): number;
  /** Closes it. @throws when a request with force=true was refused and `forgive` is not given. */
  stop(options?: { readonly forgive?: boolean }): Promise<void>;
}

/** Starts a counting proxy with faults on a free loopback port in front of a running API server. */
export async function startFaultProxy(
  server: Pick<ApiServerHandle, 'url' | 'ca' | 'certFile' | 'keyFile'>,
  options: FaultProxyOptions = {},
): Promise<FaultProxy> {
  const violationsFile = 'violationsFile' in options ? options.violationsFile : process.env[violationsVariable];
  const plan = new FaultPlan({ violationsFile });
  const upstream: Upstream = {
    target: new URL(server.url),
    agent: new HttpsAgent({ keepAlive: true, ca: server.ca, maxSockets: Infinity }),
  };
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    serve(request, response, plan, upstream).catch(() => request.socket.destroy());
  };
  const front: Server = options.plain
    ? createHttp(handle)
    : createHttps({ cert: readFileSync(server.certFile), key: readFileSync(server.keyFile) }, handle);
  const sockets = new Set<Socket>();
  front.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  });
  front.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    front.once('error', reject);
    front.listen(0, '127.0.0.1', () => resolve());
  });
  const { port } = front.address() as AddressInfo;
  const cutConnections = (): number => {
    const open = [...sockets];
    for (const socket of open) socket.destroy();
    return open.length;
  };
  return {
    url: `${options.plain ? 'http' : 'https'}://127.0.0.1:${port}`,
    plan,
    cutConnections,
    async stop({ forgive = false } = {}) {
      plan.clear();
      const closed = new Promise<void>((resolve) => front.close(() => resolve()));
      cutConnections();
      await closed;
      upstream.agent.destroy();
      if (!forgive && plan.violations.length > 0)
        throw new Error(`refused by the proxy: ${plan.violations.join('; ')}`);
    },
  };
}

interface Upstream {
  readonly target: URL;
  readonly agent: HttpsAgent;
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  plan: FaultPlan,
  upstream: Upstream,
): Promise<void> {
  const body = await readBody(request);
  const described = describeRequest(request.method ?? 'GET', request.url ?? '/', request.headers['content-type'], body);
  const { record, fault } = plan.admit(described);
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  switch (fault?.kind) {
    case 'dropBefore':
      request.socket.destroy();
      return;
    case 'dropAfter': {
      const answer = await forward(request, body, upstream, new AbortController().signal);
      for await (const _ of answer);
      request.socket.destroy();
      return;
    }
    case 'hang':
      plan.cleared.addEventListener('abort', () => request.socket.destroy(), { once: true });
      return;
    case 'status': {
      const answer = injectedAnswer(fault);
      record.status = answer.status;
      record.answeredAt = performance.now();
      response.writeHead(answer.status, answer.headers).end(answer.body);
      return;
    }
    default:
      await passThrough(request, response, { body, record, fault, cleared: plan.cleared, gone: gone.signal, upstream });
  }
}

interface Passing {
  readonly body: Buffer;
  readonly record: RequestRecord;
  readonly fault: Fault | undefined;
  readonly cleared: AbortSignal;
  readonly gone: AbortSignal;
  readonly upstream: Upstream;
}

async function passThrough(request: IncomingMessage, response: ServerResponse, passing: Passing): Promise<void> {
  const { fault, record, gone } = passing;
  if (fault?.kind === 'delay' && fault.when !== 'after') await delay(fault.ms, undefined, { signal: gone });
  const answer = await forward(request, passing.body, passing.upstream, gone);
  if (fault?.kind === 'delay' && fault.when === 'after') await delay(fault.ms, undefined, { signal: gone });
  const { connection: _connection, 'keep-alive': _keep, 'transfer-encoding': _coding, ...headers } = answer.headers;
  // A shaped body has another length than the server said.
  if (fault !== undefined && fault.kind !== 'delay') delete headers['content-length'];
  record.status = answer.statusCode ?? 0;
  record.answeredAt = performance.now();
  response.writeHead(record.status, headers);
  response.flushHeaders();
  try {
    for await (const chunk of shapeBody(answer, fault, AbortSignal.any([passing.cleared, gone]))) {
      if (!response.write(chunk)) await drained(response, gone);
    }
    response.end();
  } catch (error) {
    if (!(error instanceof BodyCut)) throw error;
    // What was written has to reach the client before the connection breaks.
    response.write('', () => request.socket.destroy());
  } finally {
    answer.destroy();
  }
}

function drained(response: ServerResponse, gone: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    response.once('drain', resolve);
    gone.addEventListener('abort', () => reject(gone.reason), { once: true });
  });
}

function forward(
  request: IncomingMessage,
  body: Buffer,
  upstream: Upstream,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { host: _host, connection: _connection, ...headers } = request.headers;
  return new Promise((resolve, reject) => {
    const outgoing = httpsRequest({
      agent: upstream.agent,
      host: upstream.target.hostname,
      port: upstream.target.port,
      method: request.method,
      path: request.url,
      headers: { ...headers, host: upstream.target.host },
      signal,
    });
    outgoing.on('response', resolve);
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
