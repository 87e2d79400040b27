/**
 * Cuts a byte stream into JSON objects. There is no length and no separator between them: the end of one is where its
 * brackets close. Works on bytes, so that a chunk may end within a character, an escape or a number.
 */
import { type Fault, fault } from './fault.ts';
import { decode, type JsonMap } from './json.ts';

/** What a peer may make this process hold. */
export interface FrameLimits {
  /** Bytes of one message. */
  readonly maxBytes: number;
  /** How deep brackets may nest. */
  readonly maxDepth: number;
  /** Bytes of one string or number. */
  readonly maxTokenBytes: number;
}

export interface Frames {
  /** Whole messages, also those that came before the fault. */
  readonly messages: readonly JsonMap[];
  /** Nothing can be read after it. */
  readonly fault?: Fault;
}

const quote = 0x22;
const backslash = 0x5c;
const isOpening = (byte: number): boolean => byte === 0x7b || byte === 0x5b;
const isClosing = (byte: number): boolean => byte === 0x7d || byte === 0x5d;
const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
const endsBare = (byte: number): boolean => byte === 0x2c || byte === 0x3a || isSpace(byte);

/** The beginning of a message whose end has not come. Grows by doubling, so that small chunks cost no more than large ones. */
class Pending {
  #buffer = Buffer.alloc(0);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(part: Uint8Array): void {
    const needed = this.#size + part.length;
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length));
      this.#buffer.copy(larger, 0, 0, this.#size);
      this.#buffer = larger;
    }
    this.#buffer.set(part, this.#size);
    this.#size = needed;
  }

  /** The whole message; what was kept is let go. */
  take(last: Uint8Array): Uint8Array {
    if (this.#size === 0) return last;
    this.add(last);
    const whole = this.#buffer.subarray(0, this.#size);
    this.#buffer = Buffer.alloc(0);
    this.#size = 0;
    return whole;
  }
}

/** Incremental; one for each connection. */
export class FrameReader {
  readonly #limits: FrameLimits;
  readonly #pending = new Pending();
  #depth = 0;
  #token = 0;
  #inString = false;
  #escaped = false;
  #fault: Fault | undefined;

  constructor(limits: FrameLimits) {
    this.#limits = limits;
  }

  /** True between messages: a peer that ends here has not cut one off. */
  get idle(): boolean {
    return this.#depth === 0 && this.#fault === undefined;
  }

  /** Takes a chunk as it came; what is kept of it is copied. */
  push(chunk: Uint8Array): Frames {
    const messages: JsonMap[] = [];
    let from = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0;
      if (this.#fault !== undefined) break;
      if (this.#depth === 0) {
        from = at;
        if (isSpace(byte)) continue;
      }
      this.#fault = this.#step(byte, this.#pending.size + at + 1 - from);
      if (this.#depth > 0 || this.#fault !== undefined) continue;
      const read = parsed(this.#pending.take(chunk.subarray(from, at + 1)));
      if (read.type === 'ok') messages.push(read.message);
      else this.#fault = read;
    }
    if (this.#fault !== undefined) return { messages, fault: this.#fault };
    if (this.#depth > 0) this.#pending.add(chunk.subarray(from));
    return { messages };
  }

  /** Moves on by a byte. @param size bytes of the message so far, this one included. */
  #step(byte: number, size: number): Fault | undefined {
    const { maxBytes, maxDepth, maxTokenBytes } = this.#limits;
    if (size > maxBytes) return fault('tooLarge', `a message of more than ${maxBytes} bytes`);
    if (this.#inString) this.#stepInString(byte);
    else if (this.#depth === 0 && byte !== 0x7b) return fault('protocol', 'a message that is not a JSON object');
    else if (byte === quote) {
      this.#inString = true;
      this.#token = 0;
    } else if (isOpening(byte) || isClosing(byte)) {
      this.#token = 0;
      this.#depth += isOpening(byte) ? 1 : -1;
      if (this.#depth > maxDepth) return fault('tooLarge', `a message nested deeper than ${maxDepth}`);
    } else this.#token = endsBare(byte) ? 0 : this.#token + 1;
    return this.#token > maxTokenBytes ? fault('tooLarge', `a value of more than ${maxTokenBytes} bytes`) : undefined;
  }

  #stepInString(byte: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (byte === backslash) this.#escaped = true;
    else if (byte === quote) {
      this.#inString = false;
      return;
    }
    this.#token++;
  }
}

/** What the bytes say. What they are is not told when they are no JSON: it may be anything. */
function parsed(bytes: Uint8Array): { readonly type: 'ok'; readonly message: JsonMap } | Fault {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return fault('protocol', 'a message that is not UTF-8');
  }
  try {
    return { type: 'ok', message: decode(text) as JsonMap };
  } catch {
    return fault('protocol', 'a message that is not JSON');
  }
}
