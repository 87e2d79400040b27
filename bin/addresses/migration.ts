/** A migration as people read it: in the order in which it is done, and so that it can be copied from. */
import { dumpYaml } from '../../constructs/lib/yaml.ts';
import type { ClassProposal, Migration, MigrationStep } from '../../executor/addressbook/migrate/propose.ts';

const documentText = ({ document, pool, notes }: ClassProposal): string =>
  [
    '---',
    `# in place of pool ${pool.namespace}/${pool.name}`,
    ...notes.map((note) => `#   ${note}`),
    dumpYaml(document).trimEnd(),
  ].join('\n');

const pinText = ({ namespace, service, pin = {} }: MigrationStep): string =>
  `kubectl -n ${namespace} patch service ${service} --type merge -p '${JSON.stringify(pin)}'`;

const adoptText = ({ namespace, service, className }: MigrationStep): string =>
  `keelson addresses adopt ${service} --namespace ${namespace} --class ${className}`;

const section = (head: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : [[`# ${head}`, ...lines].join('\n')];

export function migrationText({ classes, steps, left, done }: Migration): string {
  const pins = steps.filter(({ pin }) => pin !== undefined).map(pinText);
  const pools = classes.map(({ pool }) => `${pool.namespace}/${pool.name}`).join(', ');
  const parts = [
    ...section('first: pin what has an address without a pin that can stay; nothing moves', pins),
    ...section('for Git, into the folder of the cluster:', classes.map(documentText)),
    ...section(
      `then take away ${pools}, wherever it comes from, and deliver the classes`,
      classes.length === 0
        ? []
        : [
            '#   MetalLB refuses pools that overlap, so the pools of the classes come once these are gone; in between it takes the',
            '#   addresses off their Services, and gives each back the one that it is pinned to. Announcements stop for as long.',
          ],
    ),
    ...section('then adopt, one by one; each shows its plan, and asks for approval:', steps.map(adoptText)),
    ...section(
      'nothing is proposed for:',
      left.map(({ object, why }) => `#   ${object}: ${why}`),
    ),
  ];
  if (parts.length === 0) parts.push('nothing is to be migrated');
  return [...parts, ...(done === 0 ? [] : [`# ${done} Services name a claim already`])].join('\n\n');
}
