import type { Problem } from '../../constructs/lib/problems.ts';
import { checkHygiene, desiredObject } from './hygiene.ts';
import { identify } from './identity.ts';
import { checkListKeys } from './listkeys.ts';
import { oneShotProblem } from './oneshot.ts';
import type { SourceDocument, SourceObject } from './source.ts';

/** Kinds that may stand at the top of a cluster folder, as `group/Kind`. */
export type SpecKinds = ReadonlySet<string>;

/** Documents by file, in the order of the sorted file names. */
export type Documents = ReadonlyMap<string, readonly SourceDocument[]>;

/** One object of a file, with its own checks done and key fields of its lists written out; undefined after problems. */
export function readObject(
  document: SourceDocument,
  problems: Problem[],
  warnings: Problem[],
): SourceObject | undefined {
  const identified = identify(document);
  if ('problems' in identified) {
    problems.push(...identified.problems);
    return undefined;
  }
  const { object } = identified;
  const oneShot = oneShotProblem(object);
  if (oneShot !== undefined) {
    problems.push(oneShot);
    return undefined;
  }
  const hygiene = checkHygiene(object);
  const lists = checkListKeys(object);
  warnings.push(...hygiene.warnings);
  problems.push(...hygiene.problems, ...lists.problems);
  return { ...object, value: desiredObject(lists.value) };
}
