import { addressesGroup, addressesRelease, addressRanges } from '../../constructs/api/addresses.ts';
import { metallbProvisioner } from '../../constructs/api/metallb.ts';
import { type Tree, unitFolder } from '../../constructs/api/tree.ts';
import { blocksOverlap, byFamily, type IPBlock, readIPRange, withoutBlocks } from '../../constructs/lib/ip.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { member, problemAt, type SourceObject } from '../load/source.ts';
import { provisionerOf, type WrittenRange } from './ranges.ts';

/** A class as the tree before had it. */
interface FormerClass {
  readonly provisioner: string;
  readonly blocks: readonly IPBlock[];
}

const classFile = new RegExp(`^${unitFolder('30-specs')}/ipaddressclass\\.${addressesGroup.replaceAll('.', '\\.')}_`);

function objectAt(path: string, bytes: Uint8Array): JsonObject | undefined {
  const value = parseYaml(Buffer.from(bytes).toString('utf8'), path).documents[0]?.value;
  return isObject(value) ? value : undefined;
}

/** The classes of a tree by name. */
function formerClasses(tree: Tree): Map<string, FormerClass> {
  const classes = new Map<string, FormerClass>();
  for (const [path, bytes] of tree) {
    const object = classFile.test(path) ? objectAt(path, bytes) : undefined;
    if (object === undefined) continue;
    const { provisioner, parameters } = member(object, 'spec');
    const { addresses } = isObject(parameters) ? parameters : {};
    const blocks = (Array.isArray(addresses) ? addresses : []).flatMap((text) => readIPRange(String(text)) ?? []);
    classes.set(String(member(object, 'metadata').name), { provisioner: String(provisioner), blocks });
  }
  return classes;
}

/** What may not become of classes that the tree before had, and what of them only the ledger can allow. */
export function changeProblems(
  classes: readonly SourceObject[],
  ranges: readonly WrittenRange[],
  previous: Tree | undefined,
): { problems: Problem[]; warnings: Problem[] } {
  const former = formerClasses(previous ?? new Map());
  return {
    problems: [...provisionerProblems(classes, former), ...movedProblems(ranges, former)],
    warnings: shrinkWarnings(classes, ranges, former),
  };
}

function provisionerProblems(classes: readonly SourceObject[], former: ReadonlyMap<string, FormerClass>): Problem[] {
  return classes.flatMap((source): Problem[] => {
    const before = former.get(source.identity.name)?.provisioner;
    const now = provisionerOf(source);
    if (before === undefined || before === now) return [];
    return [
      problemAt(source, ['spec', 'provisioner'], {
        reason: 'RuleViolated',
        message: `provisioner cannot be changed: what is published says ${before}`,
        value: now,
        remedy: `write ${before}, or make another class of another name`,
      }),
    ];
  });
}

/** The class that a range would be taken from. */
function movedProblems(ranges: readonly WrittenRange[], former: ReadonlyMap<string, FormerClass>): Problem[] {
  return ranges.flatMap((range): Problem[] => {
    const { name } = range.source.identity;
    const from = [...former].find(
      ([other, { provisioner, blocks }]) =>
        other !== name &&
        provisioner === metallbProvisioner &&
        blocks.some((block) => byFamily(block).some((part) => blocksOverlap(part, range.block))),
    );
    if (from === undefined) return [];
    return [
      problemAt(range.source, range.path, {
        reason: 'AddressRangeMoved',
        message: `what is published gives addresses of it to class ${from[0]}; those that are in use would be of two classes`,
        value: range.block.text,
        remedy: `take it from class ${from[0]} first, let that be delivered and accepted, and give it to ${name} then`,
      }),
    ];
  });
}

function shrinkWarnings(
  classes: readonly SourceObject[],
  ranges: readonly WrittenRange[],
  former: ReadonlyMap<string, FormerClass>,
): Problem[] {
  return classes.flatMap((source): Problem[] => {
    const before = former.get(source.identity.name);
    if (before === undefined || before.provisioner !== metallbProvisioner) return [];
    const own = ranges.filter((range) => range.source === source).map(({ block }) => block);
    const lost = [...new Set(withoutBlocks(before.blocks, own).map(({ text }) => text))];
    if (lost.length === 0) return [];
    return [
      problemAt(source, ['spec', 'parameters', 'addresses'], {
        reason: 'AddressRangeShrinks',
        message: `addresses of ${lost.join(', ')} are taken from the class; the executor accepts it once the ledger holds none of them`,
        remedy: 'look at `kubectl get ipaddresses.local.sdn.cozystack.io` before it is published',
      }),
    ];
  });
}

const recordFile = new RegExp(`^payload/${addressesRelease}/[^/]+/configmap_([^_]+)_${addressRanges}\\.yaml$`);

/** The namespace of placeholders of a tree; undefined when it has none. */
export function formerPlaceholders(tree: Tree | undefined): string | undefined {
  for (const path of tree?.keys() ?? []) {
    const found = recordFile.exec(path)?.[1];
    if (found !== undefined) return found;
  }
  return undefined;
}
