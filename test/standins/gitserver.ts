import { spawn } from 'node:child_process';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface GitServerOptions {
  /** Folder whose bare repositories are served; each says itself whether it takes pushes. */
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  readonly username: string;
  readonly password: string;
  /** The loopback address unless another one is named. */
  readonly address?: string;
  /** A free one unless it is named. */
  readonly port?: number;
  /** What callers without the right password are told, given the header that they sent. */
  readonly refusal?: (authorization: string | undefined) => string;
}

export interface GitServer {
  readonly port: number;
  /** `http://<address>:<port>` */
  readonly url: string;
  close(): Promise<void>;
}

/** Git over HTTP by git's own backend, behind a password. */
export async function startGitServer(options: GitServerOptions): Promise<GitServer> {
  const wanted = `Basic ${Buffer.from(`${options.username}:${options.password}`).toString('base64')}`;
  const server = createServer((request, response) => {
    const { authorization } = request.headers;
    if (authorization === wanted) answer(options, request, response);
    else {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"', 'content-type': 'text/plain' });
      response.end(options.refusal?.(authorization));
    }
  });
  const { address = '127.0.0.1' } = options;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, address, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://${address}:${port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function answer(options: GitServerOptions, request: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
  const child = spawn('git', ['http-backend'], {
    env: {
      ...options.env,
      GIT_PROJECT_ROOT: options.root,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: pathname,
      QUERY_STRING: searchParams.toString(),
      REQUEST_METHOD: request.method ?? 'GET',
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      REMOTE_USER: options.username,
    },
  });
  request.pipe(child.stdin);
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.on('close', () => {
    const all = Buffer.concat(chunks);
    const split = all.indexOf('\r\n\r\n');
    let status = 200;
    for (const line of all.subarray(0, split).toString().split('\r\n')) {
      const [name = '', ...value] = line.split(': ');
      if (name === 'Status') status = Number.parseInt(value.join(': '), 10);
      else response.setHeader(name, value.join(': '));
    }
    response.writeHead(status).end(all.subarray(split + 4));
  });
}
