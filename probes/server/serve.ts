import { X509Certificate } from 'node:crypto';
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createNetServer, type Server as NetServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import {
  enrolmentLimits,
  enrolmentPath,
  enrolmentRequestText,
  parseEnrolmentGrant,
} from '../../constructs/api/enrolment.ts';
import { questionLimits } from '../../constructs/api/evidence/question.ts';
import { evidencePath, noncePattern } from '../../constructs/api/evidence/words.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import { redact } from '../../constructs/lib/redact.ts';
import type { Material } from './material.ts';
import { isExecutor } from './standing.ts';

/**
 * The evidence server. It answers nobody but the executor: a peer without a certificate, or with one that is wrong, has
 * expired or belongs to a probe, loses its connection without a byte of an answer.
 */

export interface ServeOptions {
  readonly clock: Clock;
  readonly material: Material;
  /** Text of an answer to a nonce, and to the question that came with it. */
  readonly answer: (nonce: string, question: string | undefined, signal: AbortSignal) => Promise<string>;
  readonly log: (message: string) => void;
  readonly limits?: Partial<ServeLimits>;
}

export interface ServeLimits {
  /** Connections at a time; more are closed at once. */
  readonly connections: number;
  /** Answers under way at a time; more are told to come back. */
  readonly answers: number;
  /** Milliseconds for a peer to prove who it is: a stranger holds a connection no longer. */
  readonly handshakeMs: number;
  /** Milliseconds from the first byte of a connection to the last one of its request. */
  readonly requestMs: number;
}

const requestsPerConnection = 4;

const defaultLimits: ServeLimits = { connections: 16, answers: 4, handshakeMs: 3_000, requestMs: 10_000 };

export interface EvidenceServer {
  /** Accepts connections; it is listened on elsewhere. */
  readonly server: NetServer;
  close(): Promise<void>;
}

export function evidenceServer(options: ServeOptions): EvidenceServer {
  const limits = { ...defaultLimits, ...options.limits };
  const sockets = new Set<Socket>();
  let answers = 0;

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', 'http://probe');
    const route = `${request.method} ${url.pathname}`;
    if (route === `GET ${enrolmentPath}`)
      return send(response, 200, enrolmentRequestText(await options.material.request()));
    if (route === `PUT ${enrolmentPath}`) return granted(request, response);
    if (route === `DELETE ${enrolmentPath}`) {
      options.material.forget();
      return send(response, 200, '{}');
    }
    if (route === `GET ${evidencePath}` || route === `POST ${evidencePath}`)
      return asked(request, response, url.searchParams.get('nonce') ?? '');
    return send(response, 404, refusal('NotFound', 'there is no such path'));
  };

  const asked = async (request: IncomingMessage, response: ServerResponse, nonce: string): Promise<void> => {
    if (!options.material.enrolled())
      return send(response, 409, refusal('NotEnrolled', 'this probe has no certificate'));
    if (!noncePattern.test(nonce))
      return send(response, 400, refusal('NonceInvalid', 'a nonce of 32 to 64 hexadecimal digits is needed'));
    const asks = request.method === 'POST';
    const question = asks ? await bodyOf(request, questionLimits.bytes) : undefined;
    if (asks && question === undefined) return send(response, 413, refusal('TooLarge', 'the question is too large'));
    if (answers >= limits.answers) return send(response, 503, refusal('Busy', 'enough answers are under way'));
    answers += 1;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    try {
      send(response, 200, await options.answer(nonce, question, gone.signal));
    } finally {
      answers -= 1;
    }
  };

  const granted = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const text = await bodyOf(request, enrolmentLimits.grant);
    const grant = text === undefined ? undefined : parseEnrolmentGrant(text);
    if (grant === undefined) return send(response, 400, refusal('GrantInvalid', 'no certificate was sent'));
    const why = await options.material.grant(grant.certificate);
    if (why !== undefined) return send(response, 422, refusal('GrantRefused', `the certificate is refused: ${why}`));
    options.log('a certificate was taken');
    return send(response, 200, '{}');
  };

  const http: Server = createHttpServer(
    { requestTimeout: limits.requestMs, headersTimeout: limits.requestMs, keepAlive: false, maxHeaderSize: 8 * 1024 },
    (request, response) => {
      handle(request, response).catch((error: unknown) => {
        options.log(redact(error instanceof Error ? error.message : 'an answer failed'));
        if (response.headersSent) response.destroy();
        else send(response, 500, refusal('Failed', 'the probe can not answer this'));
      });
    },
  );
  // A connection carries a few requests and ends: a certificate that expires meanwhile is worth nothing soon after.
  http.maxRequestsPerSocket = requestsPerConnection;

  const tls = createTlsServer(
    { requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3', handshakeTimeout: limits.handshakeMs },
    (secure) => {
      if (admitted(secure, options.clock.now())) http.emit('connection', secure);
      else secure.destroy();
    },
  );
  tls.on('tlsClientError', (_error, secure) => secure.destroy());
  let shown = '';

  const meet = async (socket: Socket): Promise<void> => {
    const face = await options.material.face();
    if (face.standing === 'closed' || socket.destroyed) {
      socket.destroy();
      return;
    }
    const { ca, cert } = face.shown;
    if (shown !== `${ca}${cert}`) {
      tls.setSecureContext({ ...face.shown, minVersion: 'TLSv1.3', allowPartialTrustChain: true });
      shown = `${ca}${cert}`;
    }
    // In the same turn, so that this very context is the one that meets it.
    tls.emit('connection', socket);
  };

  const server = createNetServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    // Handshake and requests together; an answer that takes longer than that is not waited for by anybody.
    const limit = setTimeout(() => socket.destroy(), limits.requestMs * requestsPerConnection);
    limit.unref();
    socket.once('close', () => clearTimeout(limit));
    meet(socket).catch((error: unknown) => {
      options.log(redact(error instanceof Error ? error.message : 'a connection failed'));
      socket.destroy();
    });
  });
  server.maxConnections = limits.connections;

  return {
    server,
    async close() {
      for (const socket of sockets) socket.destroy();
      http.close();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The handshake has checked who signed; here is who it is. A session that goes on from an earlier one proves nothing now. */
function admitted(socket: TLSSocket, now: number): boolean {
  if (!socket.authorized || socket.isSessionReused()) return false;
  const { raw } = socket.getPeerCertificate();
  return raw !== undefined && isExecutor(new X509Certificate(raw), now);
}

const refusal = (reason: string, message: string): string => JSON.stringify({ reason, message });

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  });
  response.end(body);
}

/** The body of a request as text; undefined beyond the limit. */
async function bodyOf(request: IncomingMessage, limitBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > limitBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
