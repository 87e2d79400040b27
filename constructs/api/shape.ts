import type { z } from 'zod';
import type { Problem } from '../lib/problems.ts';

/** Result of reading a value of a known form: the value with defaults filled in, or everything that is wrong with it. */
export type Shaped<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problems: Problem[] };

const fieldPath = (path: readonly PropertyKey[]): string =>
  path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '');

/** Reads a value of one of our wire formats. `where` is put on every problem. */
export function readShape<S extends z.ZodType>(
  schema: S,
  value: unknown,
  where: Partial<Problem> & { reason: string },
): Shaped<z.output<S>> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return { ok: true, value: parsed.data };
  return {
    ok: false,
    problems: parsed.error.issues.map((issue) => ({ ...where, message: issue.message, path: fieldPath(issue.path) })),
  };
}
