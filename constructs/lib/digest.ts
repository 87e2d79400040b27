import { hash } from 'node:crypto';
import { canonicalJson, type JsonValue } from './json.ts';

/** `sha256:` and 64 hexadecimal digits. */
export type Digest = `sha256:${string}`;

const form = /^sha256:[0-9a-f]{64}$/;

/** True for a well-formed sha256 digest. */
export function isDigest(text: unknown): text is Digest {
  return typeof text === 'string' && form.test(text);
}

/** The sha256 of `data` in hexadecimal; strings count as UTF-8. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex');
}

/** The sha256 of `data` as `sha256:<hex>`. */
export function sha256Digest(data: string | Uint8Array): Digest {
  return `sha256:${sha256Hex(data)}`;
}

/** The sha256 of the canonical JSON of `value`. */
export function digestOf(value: JsonValue): Digest {
  return sha256Digest(canonicalJson(value));
}

/** The first twelve hexadecimal digits: short enough for a name, long enough to tell payloads apart. */
export function shortDigest(digest: string): string {
  return digest.replace(/^sha256:/, '').slice(0, 12);
}
