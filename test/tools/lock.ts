import { connect, createServer, type Server, type Socket } from 'node:net';
import { sha256Hex } from '../../constructs/lib/digest.ts';

export interface LockOptions {
  /** Called once when another process holds the lock. */
  readonly onWait?: () => void;
  readonly signal?: AbortSignal;
}

/**
 * Runs `work` while no other process of this machine runs work under the same name. The lock is an abstract Unix
 * socket: the kernel gives it back the moment its holder dies, so there is nothing stale to clean after a kill -9.
 */
export async function withLock<T>(name: string, options: LockOptions, work: () => Promise<T>): Promise<T> {
  const address = `\0keelson-${sha256Hex(name).slice(0, 40)}`;
  let waited = false;
  for (;;) {
    options.signal?.throwIfAborted();
    const release = await take(address);
    if (release !== undefined) {
      try {
        return await work();
      } finally {
        await release();
      }
    }
    if (!waited) options.onWait?.();
    waited = true;
    await holderGone(address, options.signal);
  }
}

function take(address: string): Promise<(() => Promise<void>) | undefined> {
  const waiting = new Set<Socket>();
  const server: Server = createServer((socket) => {
    waiting.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => waiting.delete(socket));
  });
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    server.listen({ path: address }, () =>
      resolve(
        () =>
          new Promise((closed) => {
            server.close(() => closed());
            for (const socket of waiting) socket.destroy();
          }),
      ),
    );
  });
}

/** Settles when the holder's socket closes, which also happens when its process is killed. */
function holderGone(address: string, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: address });
    const aborted = (): void => {
      socket.destroy();
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', aborted, { once: true });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      signal?.removeEventListener('abort', aborted);
      resolve();
    });
  });
}
