/** An adoption as people and programs read it. */
import type { AdoptPlan } from '../../executor/addressbook/adopt/plan.ts';
import { describeRef, refOf } from '../../executor/kube/types.ts';
import { table } from '../output.ts';

/** What a person reads before approving. */
export function adoptionText({ steps, warnings, service, claim, className, ip, digest }: AdoptPlan): string {
  const rows = steps.map(({ object, done, note }, n) => [
    String(n + 1),
    describeRef(refOf(object)),
    done ? 'done' : 'to do',
    note,
  ]);
  const { namespace, name } = service;
  const flags = [
    `--namespace ${namespace}`,
    `--class ${className}`,
    ...(claim.name === name ? [] : [`--claim ${claim.name}`]),
  ];
  return [
    `Service ${namespace}/${name} keeps ${ip.text}, which comes under class ${className}`,
    '',
    table(['STEP', 'OBJECT', 'STATE', 'WHAT HAPPENS'], rows),
    '',
    ...warnings.map((warning) => `note: ${warning}`),
    `plan ${digest}`,
    steps.every(({ done }) => done)
      ? 'nothing is left to do'
      : `to do this: keelson addresses adopt ${name} ${flags.join(' ')} --approve ${digest}`,
  ].join('\n');
}

export const adoptionJson = ({ ip, steps, ...plan }: AdoptPlan): unknown => ({
  ...plan,
  address: ip.text,
  steps: steps.map(({ step, write, done, note, object }) => ({ step, write, done, note, object })),
});
