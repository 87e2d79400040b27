/** From the bytes of a watch to its events: one JSON object per line, in chunks that end anywhere. */
import { isObject } from '../../constructs/lib/json.ts';
import { parseObject } from './classify.ts';
import type { KubeObject } from './types.ts';

/** No object of the API server comes near this; a longer line is no watch event. */
const longestLine = 16 * 1024 * 1024;

export type StreamItem =
  | { readonly type: 'line'; readonly text: string }
  /** The stream ended inside a line: what arrived of it is worth nothing. */
  | { readonly type: 'truncated'; readonly length: number }
  | { readonly type: 'tooLong'; readonly length: number };

/** Whole lines of a byte stream, whatever its chunks; characters may be split over chunks. */
export async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamItem> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    let start = 0;
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n', start)) {
      const text = rest.slice(start, end).trim();
      start = end + 1;
      if (text !== '') yield { type: 'line', text };
    }
    rest = rest.slice(start);
    if (rest.length > longestLine) {
      yield { type: 'tooLong', length: rest.length };
      return;
    }
  }
  rest += decoder.decode();
  if (rest.trim() !== '') yield { type: 'truncated', length: rest.length };
}

export type WatchEvent =
  | { readonly type: 'added' | 'modified' | 'deleted'; readonly object: KubeObject; readonly resourceVersion: string }
  | { readonly type: 'bookmark'; readonly resourceVersion: string }
  | { readonly type: 'error'; readonly code: number; readonly reason: string; readonly retryAfterMs?: number }
  | { readonly type: 'undecodable'; readonly why: string };

const changes = { ADDED: 'added', MODIFIED: 'modified', DELETED: 'deleted' } as const;

/** The event of one line. What cannot be understood is said so, never skipped. */
export function decodeEvent(line: string): WatchEvent {
  const event = parseObject(line);
  if (event === undefined || !isObject(event.object)) return { type: 'undecodable', why: 'the line is no watch event' };
  const { object } = event;
  if (event.type === 'ERROR') {
    const details = isObject(object.details) ? object.details : {};
    const seconds = details.retryAfterSeconds;
    return {
      type: 'error',
      code: typeof object.code === 'number' ? object.code : 0,
      reason: String(object.reason ?? object.message ?? ''),
      ...(typeof seconds === 'number' ? { retryAfterMs: seconds * 1000 } : {}),
    };
  }
  const metadata = isObject(object.metadata) ? object.metadata : {};
  const resourceVersion = metadata.resourceVersion;
  if (typeof resourceVersion !== 'string') return { type: 'undecodable', why: 'the event carries no resourceVersion' };
  if (event.type === 'BOOKMARK') return { type: 'bookmark', resourceVersion };
  const change = changes[event.type as keyof typeof changes];
  if (change === undefined) return { type: 'undecodable', why: `unknown event type ${JSON.stringify(event.type)}` };
  if (typeof metadata.name !== 'string') return { type: 'undecodable', why: 'the event carries no name' };
  return { type: change, object: object as KubeObject, resourceVersion };
}
