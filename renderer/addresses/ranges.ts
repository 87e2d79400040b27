import { addressAnnotations } from '../../constructs/api/addresses.ts';
import { metallbProvisioner } from '../../constructs/api/metallb.ts';
import { type IPBlock, parseCIDR } from '../../constructs/lib/ip.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { member, type Path, problemAt, type SourceObject } from '../load/source.ts';

/** A range and where it is written. */
export interface WrittenRange {
  readonly block: IPBlock;
  /** Who gives its addresses: `class public`, `pool metallb-system/office`. */
  readonly owner: string;
  readonly source: SourceObject;
  readonly path: Path;
}

const parameters = ['spec', 'parameters'];
const example = 'write networks such as 203.0.113.0/28 or 2001:db8::/120 in canonical form';

export const provisionerOf = ({ value }: Pick<SourceObject, 'value'>): string =>
  String(member(value, 'spec').provisioner);

/** Whether MetalLB gives the addresses of a class. */
export const isOfMetallb = (spec: SourceObject): boolean => provisionerOf(spec) === metallbProvisioner;

/** The networks of the classes that MetalLB gives addresses for; what is wrong with them goes to the problems. */
export function classRanges(classes: readonly SourceObject[], problems: Problem[]): WrittenRange[] {
  return classes.filter(isOfMetallb).flatMap((source) => rangesOf(source, problems));
}

function rangesOf(source: SourceObject, problems: Problem[]): WrittenRange[] {
  const given = member(member(source.value, 'spec'), 'parameters');
  const path = [...parameters, 'addresses'];
  const { addresses } = given;
  if (!Array.isArray(addresses) || addresses.length === 0) {
    const missing = addresses === undefined || addresses === null;
    problems.push(
      problemAt(source, missing ? parameters : path, {
        reason: missing ? 'FieldMissing' : 'FieldInvalid',
        message: missing
          ? 'spec.parameters.addresses is missing; MetalLB needs to know which addresses the class has'
          : 'spec.parameters.addresses is not a list of networks',
        ...(missing ? {} : { value: JSON.stringify(addresses) }),
        remedy: example,
      }),
    );
    return [];
  }
  return addresses.flatMap((entry, index): WrittenRange[] => {
    const at = [...path, index];
    const read = typeof entry === 'string' ? parseCIDR(entry) : undefined;
    if (read?.ok === true) return [{ block: read.value, owner: `class ${source.identity.name}`, source, path: at }];
    const text = typeof entry === 'string' ? entry : JSON.stringify(entry);
    problems.push(
      problemAt(source, at, {
        reason: 'FieldInvalid',
        message: `it ${read?.why ?? 'is not a text'}`,
        value: text,
        remedy: example,
      }),
    );
    return [];
  });
}

/** Claims that name no class get the default one; with two of them they get none. */
export function defaultProblems(classes: readonly SourceObject[]): Problem[] {
  const isDefault = ({ value }: SourceObject): boolean =>
    member(member(value, 'metadata'), 'annotations')[addressAnnotations.defaultClass] === 'true';
  const [first, ...others] = classes.filter(isDefault);
  if (first === undefined) return [];
  return others.map((source) =>
    problemAt(source, ['metadata', 'annotations', addressAnnotations.defaultClass], {
      reason: 'MultipleDefaultClasses',
      message: `class ${first.identity.name} (${first.file}:${first.line}) is the default too; a claim without a class would get neither`,
      value: 'true',
      remedy: 'leave the annotation on one class',
    }),
  );
}
