/**
 * The status page over HTTP: read-only, on the loopback address alone. Whoever wants it from elsewhere forwards the port,
 * which the API server lets only those do who may.
 */
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { streamSSE } from 'hono/streaming';
import { type Clock, rest } from '../../constructs/lib/clock.ts';
import { digestOf } from '../../constructs/lib/digest.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { EvidenceReport } from './evidence.ts';
import { mainPart, page } from './html/page.ts';
import { script } from './html/script.ts';
import { icon, style } from './html/style.ts';
import type { PageModel } from './model.ts';

export interface PageSource {
  model(): PageModel;
  /** The last rounds in full; of one node when it is named. */
  evidence(node: string | undefined): EvidenceReport;
}

export interface PageOptions {
  readonly source: PageSource;
  readonly clock: Clock;
  /** How often a change is looked for while somebody watches, in milliseconds. */
  readonly everyMs?: number;
  /** How many may watch at a time. */
  readonly watchers?: number;
}

const headers: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
};

const localNames: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** A page of another site that has its own name lead here sends that name. */
function isLocal(host: string | undefined): boolean {
  return host !== undefined && localNames.includes(host.replace(/:[0-9]+$/, '').toLowerCase());
}

const keepAliveMs = 15_000;

/** Routes of the page. `over` ends what is watched. */
function pageApp(options: PageOptions, over: AbortSignal): Hono {
  const { source, clock, everyMs = 1_000, watchers = 16 } = options;
  const app = new Hono();
  let watching = 0;
  let known: { readonly at: number; readonly model: PageModel; readonly digest: string } | undefined;
  const current = (): { readonly model: PageModel; readonly digest: string } => {
    const at = clock.monotonic();
    if (known !== undefined && at - known.at < everyMs / 2) return known;
    const model = source.model();
    known = { at, model, digest: digestOf(model as unknown as JsonObject) };
    return known;
  };
  app.use(async (context, next) => {
    if (!isLocal(context.req.header('host'))) return context.text('this page answers only by a local name\n', 421);
    if (context.req.method !== 'GET' && context.req.method !== 'HEAD') return context.text('read-only\n', 405);
    await next();
    for (const [name, value] of Object.entries(headers)) context.res.headers.set(name, value);
    return undefined;
  });
  app.get('/', (context) => {
    const { model, digest } = current();
    return context.html(page(model, digest, clock.now()));
  });
  app.get('/main', (context) => {
    const { model, digest } = current();
    return context.html(mainPart(model, digest, clock.now()));
  });
  app.get('/page.json', (context) => context.json(current().model));
  app.get('/evidence.json', (context) => context.json(source.evidence(context.req.query('node'))));
  app.get('/page.css', (context) => context.body(style, 200, { 'content-type': 'text/css; charset=utf-8' }));
  app.get('/page.js', (context) => context.body(script, 200, { 'content-type': 'text/javascript; charset=utf-8' }));
  app.get('/icon.svg', (context) => context.body(icon, 200, { 'content-type': 'image/svg+xml' }));
  app.get('/events', (context) => {
    // Answered by the route of GET, whose stream nobody would read: it would take the place of a watcher for good.
    if (context.req.method === 'HEAD') return context.body(null, 200, { 'content-type': 'text/event-stream' });
    if (watching >= watchers) return context.text('too many watch this page already\n', 503, { 'retry-after': '30' });
    watching += 1;
    return watch(context);
  });
  const watch = (context: Context): Response =>
    streamSSE(context, async (stream) => {
      const gone = new AbortController();
      stream.onAbort(() => gone.abort());
      const signal = AbortSignal.any([over, gone.signal]);
      try {
        let [told, at] = ['', Number.NEGATIVE_INFINITY];
        while (!signal.aborted) {
          const { digest } = current();
          if (digest !== told || clock.monotonic() - at > keepAliveMs) {
            [told, at] = [digest, clock.monotonic()];
            await stream.writeSSE({ event: 'page', data: digest });
          }
          await rest(clock, everyMs, signal);
        }
      } finally {
        watching -= 1;
      }
    });
  return app;
}

export interface PageServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Serves the page on 127.0.0.1; port 0 takes a free one. */
export async function servePage(options: PageOptions, port: number): Promise<PageServer> {
  const over = new AbortController();
  const server = serve({ fetch: pageApp(options, over.signal).fetch, hostname: '127.0.0.1', port });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.once('listening', () => resolve());
    if (server.listening) resolve();
  });
  // An error later on (no file descriptor left for a connection) is no reason for the executor to end.
  server.on('error', () => undefined);
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        over.abort();
        server.close(() => resolve());
        if ('closeAllConnections' in server) server.closeAllConnections();
      }),
  };
}

/** Serves the page where a port is given and free; nothing that an executor is for hangs on it. */
export async function tryServePage(
  options: PageOptions,
  port: number | undefined,
  failed: (why: string) => void,
): Promise<PageServer | undefined> {
  if (port === undefined) return undefined;
  return servePage(options, port).catch((error: unknown) => {
    failed(error instanceof Error ? error.message : String(error));
    return undefined;
  });
}
