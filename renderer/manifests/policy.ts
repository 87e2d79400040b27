import { annotations, foreignAnnotations, neverPrunedKinds, recreatableKinds } from '../../constructs/api/constants.ts';
import { groupKindOf } from '../../constructs/api/plan.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { ReleaseObject } from '../domain.ts';
import { member, problemAt, type SourceObject } from '../load/source.ts';

type Policy = Omit<ReleaseObject, 'object' | 'origin' | 'line' | 'bind'>;

/** Kinds that hold what can not be made again; they are never deleted to be recreated. */
const neverRecreated = [
  ...neverPrunedKinds,
  '/Namespace',
  'apiextensions.k8s.io/CustomResourceDefinition',
  'apps/StatefulSet',
];

const pointerForm = /^(\/([^~/]|~[01])+)+$/;

/**
 * How the executor is to treat one object, as its annotations say. Nothing is guessed: a value that is not known is a
 * problem.
 */
export function readPolicy(object: SourceObject): { policy: Policy; problems: Problem[] } {
  const problems: Problem[] = [];
  const found = member(member(object.value, 'metadata'), 'annotations');
  const choice = <T extends string>(name: string, allowed: readonly T[]): T | undefined => {
    const value = found[name];
    if (value === undefined || value === null) return undefined;
    const match = allowed.find((candidate) => candidate === value);
    if (match === undefined)
      problems.push(
        problemAt(object, ['metadata', 'annotations', name], {
          reason: 'FieldInvalid',
          message: `annotation ${name} must be ${allowed.map((text) => `"${text}"`).join(' or ')}`,
          value: String(value),
          remedy: 'correct the value, in quotes, or remove the annotation',
        }),
      );
    return match;
  };
  const flag = (name: string): boolean => choice(name, ['true', 'false']) === 'true';
  const conflict = choice(annotations.conflictPolicy, ['fail', 'yield'] as const);
  const yieldFields = readPointers(object, found[annotations.yieldFields], problems);
  const keep =
    choice(annotations.prune, ['disabled', 'enabled'] as const) === 'disabled' ||
    found[foreignAnnotations.helmResourcePolicy] === 'keep';
  const policy: Policy = {
    ...(conflict === undefined ? {} : { conflict }),
    ...(yieldFields === undefined ? {} : { yieldFields }),
    keep: keep || neverPrunedKinds.includes(groupKindOf(object.identity)),
    recreate: flag(annotations.recreate),
    createOnly: flag(annotations.createOnly),
    absent: flag(annotations.absent),
  };
  problems.push(...contradictions(object, policy));
  return { policy, problems };
}

function readPointers(object: SourceObject, value: unknown, problems: Problem[]): string[] | undefined {
  if (value === undefined || value === null) return undefined;
  const pointers = typeof value === 'string' ? value.split(',').map((text) => text.trim()) : [];
  const wrong = pointers.filter((text) => !pointerForm.test(text));
  if (pointers.length > 0 && wrong.length === 0) return [...new Set(pointers)].sort();
  problems.push(
    problemAt(object, ['metadata', 'annotations', annotations.yieldFields], {
      reason: 'FieldInvalid',
      message: 'it must list JSON pointers, separated by commas',
      value: wrong[0] ?? String(value),
      remedy: 'write pointers such as /spec/replicas',
    }),
  );
  return undefined;
}

function contradictions(object: SourceObject, policy: Policy): Problem[] {
  const say = (name: string, message: string, remedy: string): Problem =>
    problemAt(object, ['metadata', 'annotations', name], { reason: 'PolicyContradiction', message, remedy });
  const problems: Problem[] = [];
  if (policy.recreate && policy.createOnly)
    problems.push(
      say(annotations.recreate, 'an object that is created once is never recreated', 'keep one of the two'),
    );
  if (policy.recreate && neverRecreated.includes(groupKindOf(object.identity)))
    problems.push(
      say(
        annotations.recreate,
        `a ${object.identity.kind} is never deleted to be recreated: what it holds would be lost`,
        'remove the annotation and change the object by hand where it can not be changed in place',
      ),
    );
  else if (policy.recreate && !recreatableKinds.includes(groupKindOf(object.identity)))
    problems.push(
      say(
        annotations.recreate,
        `a ${object.identity.kind} is not among the kinds that are deleted to be recreated (${recreatableKinds.map((kind) => kind.slice(kind.indexOf('/') + 1)).join(', ')})`,
        'remove the annotation; give the object another name where it can not be changed in place',
      ),
    );
  if (policy.absent && policy.keep)
    problems.push(say(annotations.absent, 'the object is to be absent and to be kept', 'keep one of the two'));
  if (policy.yieldFields !== undefined && policy.conflict !== 'yield')
    problems.push(
      say(
        annotations.yieldFields,
        'fields are only given up under the policy yield',
        `set ${annotations.conflictPolicy}: "yield"`,
      ),
    );
  return problems;
}
