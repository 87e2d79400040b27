/** Many folders are rendered in several threads: each takes a share, and none writes before all have rendered. */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { type Problem, ProblemError } from '../../constructs/lib/problems.ts';
import type { ClusterFolder } from '../clusters.ts';
import type { Invocation } from '../invocation.ts';
import { type RenderedShare, renderShare, type ShareOptions, type ShareResult } from './share.ts';

/** What a thread is started with. */
export interface ShareWork {
  readonly renderShare: {
    readonly options: ShareOptions;
    readonly folders: readonly ClusterFolder[];
    readonly cwd: string;
    readonly env: Readonly<Record<string, string | undefined>>;
  };
}

/** What a thread tells. */
export type ShareTold =
  | { readonly type: 'said'; readonly text: string }
  | { readonly type: 'rendered'; readonly results: readonly ShareResult[] }
  | { readonly type: 'written' }
  /** `problems` of the input, or the message of something else. */
  | { readonly type: 'failed'; readonly problems?: readonly Problem[]; readonly message: string };

/** What a thread is asked after that. */
export type ShareAsked = 'write' | 'stop';

/** Below this many folders a thread takes longer to start than it saves. */
const leastFolders = 8;
const mostThreads = 8;

/** In how many threads so many folders are rendered. */
export const threadsFor = (folders: number, cores: number): number =>
  Math.max(1, Math.min(cores, mostThreads, Math.floor(folders / leastFolders)));

/**
 * Renders all folders. Their results stand in the order of the folders, whatever thread had them.
 * @throws ProblemError with the problems of every share.
 */
export async function renderShares(
  invocation: Invocation,
  options: ShareOptions,
  folders: readonly ClusterFolder[],
): Promise<RenderedShare> {
  const threads = threadsFor(folders.length, availableParallelism());
  const { program } = invocation;
  if (threads === 1 || program === undefined) return renderShare(invocation, options, folders);
  const { out, check, cache } = options;
  const plain: ShareOptions = {
    cache,
    ...(out === undefined ? {} : { out }),
    ...(check === undefined ? {} : { check }),
  };
  const shares = Array.from({ length: threads }, (_, share) => folders.filter((_folder, n) => n % threads === share));
  const running = shares.map((share) => new Thread(program, invocation, plain, share));
  const stop = async (): Promise<void> => {
    await Promise.all(running.map((thread) => thread.stop()));
  };
  try {
    const rendered = await all(running.map((thread) => thread.rendered));
    return {
      results: folders.map((_folder, n) => {
        const result = rendered[n % threads]?.[Math.floor(n / threads)];
        if (result === undefined) throw new TypeError('a thread has lost a folder');
        return result;
      }),
      async write() {
        try {
          await all(running.map((thread) => thread.write()));
        } finally {
          await stop();
        }
      },
    };
  } catch (error) {
    await stop();
    throw error;
  } finally {
    if (check === true) await stop();
  }
}

/** All results, or all problems; every share has ended by then. */
async function all<T>(work: readonly Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(work);
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  const other = errors.find((error) => !(error instanceof ProblemError));
  if (other !== undefined) throw other;
  const problems = errors.flatMap((error) => (error instanceof ProblemError ? error.problems : []));
  if (problems.length > 0) throw new ProblemError(problems);
  return results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
}

class Thread {
  readonly #worker: Worker;
  readonly #ended: Promise<void>;
  readonly #written = Promise.withResolvers<void>();
  readonly rendered: Promise<readonly ShareResult[]>;

  constructor(program: string, invocation: Invocation, options: ShareOptions, folders: readonly ClusterFolder[]) {
    const { cwd, env, signal } = invocation;
    const workerData: ShareWork = { renderShare: { options, folders, cwd, env: { ...env } } };
    const worker = new Worker(program, { workerData });
    this.#worker = worker;
    const rendered = Promise.withResolvers<readonly ShareResult[]>();
    this.rendered = rendered.promise;
    const fail = (error: unknown): void => {
      rendered.reject(error);
      this.#written.reject(error);
    };
    // Whoever waits for one of the two need not wait for the other.
    this.#written.promise.catch(() => undefined);
    this.rendered.catch(() => undefined);
    worker.on('message', (told: ShareTold) => {
      if (told.type === 'said') invocation.err(told.text);
      else if (told.type === 'rendered') rendered.resolve(told.results);
      else if (told.type === 'written') this.#written.resolve();
      else fail(told.problems === undefined ? new Error(told.message) : new ProblemError(told.problems));
    });
    worker.on('error', fail);
    this.#ended = new Promise((resolve) => worker.once('exit', () => resolve()));
    worker.once('exit', () => fail(new Error('a thread that rendered has ended')));
    signal.addEventListener('abort', () => this.#ask('stop'), { once: true });
  }

  #ask(asked: ShareAsked): void {
    this.#worker.postMessage(asked);
  }

  write(): Promise<void> {
    this.#ask('write');
    return this.#written.promise;
  }

  async stop(): Promise<void> {
    this.#ask('stop');
    await this.#ended;
  }
}
