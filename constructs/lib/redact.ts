/**
 * The one redaction point. Everything that leaves the process as text (logs, events, status, errors, reports) passes
 * here; nothing else tries to guess what is secret.
 */
import { isObject, type JsonObject, type JsonValue } from './json.ts';

const hidden = '[redacted]';

const patterns: readonly [RegExp, string][] = [
  [/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|$)/g, hidden],
  [/\b(authorization\s*[:=]\s*)(?:bearer|basic|token)?\s*[^\s,;"']+/gi, `$1${hidden}`],
  [/\b(bearer\s+)[A-Za-z0-9._~+/-]{8,}=*/gi, `$1${hidden}`],
  // Words such as "Basic authentication" have neither a digit nor the end of an encoding.
  [/\b(basic\s+)(?=[A-Za-z+/]*[0-9=])[A-Za-z0-9+/]{8,}={0,2}/gi, `$1${hidden}`],
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g, hidden],
  [/([a-z][a-z0-9+.-]{0,31}:\/\/)[^/\s:@"']+(?::[^/\s@"']*)?@/gi, `$1${hidden}@`],
  [
    /\b((?:pass(?:word|wd)?|secret|token|api[_-]?key|access[_-]?key(?:[_-]?id)?|client[_-]?secret|x-amz-[a-z-]+|sig(?:nature)?)=)[^\s&"',;]+/gi,
    `$1${hidden}`,
  ],
  [
    /("(?:password|passwd|token|secret|apiKey|accessKey|secretKey|identitytoken|auth|Secret)"\s*:\s*")(?:[^"\\]|\\.)*(")/g,
    `$1${hidden}$2`,
  ],
];

/**
 * `text` without bearer tokens, private keys, URL credentials and the values of well-known secret parameters.
 * @param known secrets that the caller handles: they are hidden wherever they stand.
 */
export function redact(text: string, known: readonly string[] = []): string {
  let out = text;
  for (const secret of known) if (secret !== '') out = out.replaceAll(secret, hidden);
  for (const [pattern, replacement] of patterns) out = out.replace(pattern, replacement);
  return out;
}

/** The keys of a map with every value hidden. */
function hideValues(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? Object.fromEntries(Object.keys(value).map((key) => [key, hidden])) : {};
}

function redactSecret(object: JsonObject): JsonObject {
  const out: JsonObject = { ...object };
  for (const field of ['data', 'stringData']) if (out[field] !== undefined) out[field] = hideValues(out[field]);
  return out;
}

function redactValue(value: JsonValue): JsonValue {
  if (typeof value === 'string') return redact(value);
  if (Array.isArray(value)) return value.map(redactValue);
  if (!isObject(value)) return value;
  const source = value.kind === 'Secret' ? redactSecret(value) : value;
  return Object.fromEntries(
    Object.entries(source).map(([key, member]) => [key, member === undefined ? member : redactValue(member)]),
  );
}

/** A copy fit for telling: Secrets (also inside lists) keep their key names and lose their values, strings pass {@link redact}. */
export function redactObject(object: JsonObject): JsonObject {
  return redactValue(object) as JsonObject;
}
