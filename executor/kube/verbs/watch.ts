import { parseStatus, tell, unanswered } from '../classify.ts';
import { collectionPath } from '../discovery.ts';
import type { Rejection, Subject } from '../outcome.ts';
import { readText, TransportError, type TransportResponse } from '../transport.ts';
import { isResource, refusal, type VerbContext } from './context.ts';
import { describeSelection, locateSelection, type Selection, selectionQuery } from './list.ts';

export interface WatchOptions {
  readonly signal: AbortSignal;
  readonly resourceVersion: string;
  /** How long the server is asked to keep the watch. */
  readonly timeoutSeconds: number;
  /** Limit in milliseconds of the whole watch on our side. */
  readonly timeoutMs: number;
}

/** `expired`: the resourceVersion is too old (410), a new list is needed. */
export type WatchStart =
  | { readonly type: 'stream'; readonly body: AsyncIterable<Uint8Array> }
  | { readonly type: 'expired'; readonly message: string }
  | Rejection;

/** Opens a watch. One attempt: whoever watches has its own way to go on. */
export async function watch(context: VerbContext, selection: Selection, options: WatchOptions): Promise<WatchStart> {
  const subject: Subject = {
    what: `watch of ${describeSelection(selection)}`,
    ref: { ...selection, name: selection.name ?? '' },
  };
  const { signal } = options;
  const resource = await locateSelection(context, subject, selection, { signal });
  if (!isResource(resource)) return resource;
  const query = {
    ...selectionQuery(selection),
    watch: 'true',
    allowWatchBookmarks: 'true',
    resourceVersion: options.resourceVersion,
    timeoutSeconds: String(options.timeoutSeconds),
  };
  const path = collectionPath(resource, selection.namespace);
  try {
    const response = await context.caller.transport({
      method: 'GET',
      path,
      query,
      headers: {},
      signal,
      timeoutMs: options.timeoutMs,
      stream: true,
    });
    if (response.status === 200) return { type: 'stream', body: response.body };
    return await refused(context, subject, response, signal);
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
    return unanswered(subject, { type: 'none', message: error.message, mayHaveHappened: false });
  }
}

async function refused(
  context: VerbContext,
  subject: Subject,
  response: TransportResponse,
  signal: AbortSignal,
): Promise<WatchStart> {
  const text = await readText(response);
  if (response.status === 410) return { type: 'expired', message: tell(subject, parseStatus(text), 410) };
  const answer = { type: 'answer', status: response.status, headers: response.headers, text, retried: false } as const;
  return refusal(context, subject, answer, { signal });
}
