import { validateDocument as validate } from '../../constructs/api/validate.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { SourceDocument } from './source.ts';

/**
 * The document with the defaults of its kind filled in; undefined after its problems were added to the list, each with
 * the line of its field.
 */
export function validateDocument(document: SourceDocument, problems: Problem[]): JsonObject | undefined {
  const read = validate(document.value, { file: document.file, locate: (path) => document.locate(path) });
  if (read.ok) return read.value;
  problems.push(...read.problems);
  return undefined;
}
