import { setTimeout as delay } from 'node:timers/promises';
import { type Fault, statusBody } from './plan.ts';

/** Thrown by {@link shapeBody} where the body has to break off. */
export class BodyCut extends Error {
  override readonly name = 'BodyCut';
}

type Body = AsyncIterable<Uint8Array>;

/**
 * A response body as a fault wants the client to see it. `signal` ends the waits of a slow one.
 * @throws BodyCut where the connection breaks.
 */
export function shapeBody(body: Body, fault: Fault | undefined, signal: AbortSignal): Body {
  switch (fault?.kind) {
    case 'cut':
      return cutAfter(body, fault.afterBytes);
    case 'halfLine':
      return breakLine(body, fault.afterLines);
    case 'watchError':
      return endWatch(body, fault.afterEvents, fault.code ?? 410);
    case 'slowStream':
      return drip(body, fault.chunkBytes, fault.intervalMs, signal);
    default:
      return body;
  }
}

async function* drip(body: Body, bytes: number, intervalMs: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    for (let at = 0; at < chunk.length; at += bytes) {
      yield chunk.subarray(at, at + bytes);
      await delay(intervalMs, undefined, { signal });
    }
  }
}

async function* cutAfter(body: Body, bytes: number): AsyncGenerator<Uint8Array> {
  let left = bytes;
  for await (const chunk of body) {
    if (chunk.length >= left) {
      if (left > 0) yield chunk.subarray(0, left);
      throw new BodyCut(`cut after ${bytes} bytes`);
    }
    left -= chunk.length;
    yield chunk;
  }
}

/** Whole lines with their line ends, and what is left at the end. */
async function* lines(body: Body): AsyncGenerator<Buffer> {
  let held = Buffer.alloc(0);
  for await (const chunk of body) {
    held = Buffer.concat([held, chunk]);
    for (let end = held.indexOf(10); end >= 0; end = held.indexOf(10)) {
      yield held.subarray(0, end + 1);
      held = held.subarray(end + 1);
    }
  }
  if (held.length > 0) yield held;
}

async function* breakLine(body: Body, after: number): AsyncGenerator<Uint8Array> {
  let passed = 0;
  for await (const line of lines(body)) {
    if (passed === after) {
      yield line.subarray(0, Math.max(1, Math.floor(line.length / 2)));
      throw new BodyCut(`cut in the middle of line ${after + 1}`);
    }
    passed += 1;
    yield line;
  }
}

async function* endWatch(body: Body, after: number, code: number): AsyncGenerator<Uint8Array> {
  let passed = 0;
  if (after > 0) {
    for await (const line of lines(body)) {
      yield line;
      passed += 1;
      if (passed === after) break;
    }
  }
  yield Buffer.from(`{"type":"ERROR","object":${statusBody(code, code === 410 ? 'Expired' : 'InternalError')}}\n`);
}
