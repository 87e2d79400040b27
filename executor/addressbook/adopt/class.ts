/** The class that an address comes under. */
import { metallbProvisioner } from '../../../constructs/api/metallb.ts';
import { holdsIP, type IPAddress } from '../../../constructs/lib/ip.ts';
import type { Problem } from '../../../constructs/lib/problems.ts';
import type { ClassView } from '../../addresses/objects.ts';
import { type Book, rangesOf } from '../book.ts';

export type ClassChoice =
  | { readonly name: string }
  | { readonly problem: Problem }
  /** Nothing can be said, and nothing is wrong with it: the address is not known. */
  | { readonly type: 'open' };

const holds = (one: ClassView, ip: IPAddress): boolean => rangesOf(one).blocks.some((block) => holdsIP(block, ip));
const namesOf = (classes: readonly ClassView[]): string => classes.map(({ name }) => name).join(', ') || 'none yet';
const rangeText = (one: ClassView): string =>
  rangesOf(one)
    .blocks.map(({ text }) => text)
    .join(', ') || 'no range';

const unusable = (message: string, remedy: string, name?: string): { readonly problem: Problem } => ({
  problem: {
    reason: 'ClassUnusable',
    ...(name === undefined ? {} : { object: `IPAddressClass ${name}` }),
    message,
    remedy,
  },
});

/** The class that is named, or the only one of the driver whose ranges hold the address. */
export function classFor({ classes }: Book, ip: IPAddress | undefined, named: string | undefined): ClassChoice {
  const ours = classes.filter(({ provisioner, deleting }) => provisioner === metallbProvisioner && !deleting);
  const propose = 'deliver a class that holds it; `keelson addresses migrate` proposes one';
  if (named !== undefined) return namedClass(classes, ours, ip, named);
  if (ip === undefined) return { type: 'open' };
  const [one, ...more] = ours.filter((candidate) => holds(candidate, ip));
  if (one === undefined)
    return unusable(`${ip.text} is in the ranges of no class of the driver for MetalLB (${namesOf(ours)})`, propose);
  if (more.length === 0) return { name: one.name };
  return unusable(
    `${ip.text} is in the ranges of several classes: ${namesOf([one, ...more])}`,
    'name one of them with --class',
  );
}

function namedClass(
  classes: readonly ClassView[],
  ours: readonly ClassView[],
  ip: IPAddress | undefined,
  name: string,
): ClassChoice {
  const found = classes.find((one) => one.name === name);
  if (found === undefined)
    return unusable('there is no such class', `name one of these with --class: ${namesOf(ours)}`, name);
  if (found.deleting) return unusable('it is being deleted', 'name another class', name);
  const { provisioner } = found;
  if (provisioner !== metallbProvisioner)
    return unusable(`it is of ${provisioner}, which pins no Services of MetalLB`, `name one of ${namesOf(ours)}`, name);
  if (ip !== undefined && !holds(found, ip))
    return unusable(
      `${ip.text} is not in its ranges (${rangeText(found)})`,
      'name the class whose ranges hold it',
      name,
    );
  return { name };
}
