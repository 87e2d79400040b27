import { acceptanceReasons } from './reasons/acceptance.ts';
import { addressReasons } from './reasons/addresses.ts';
import { applyReasons } from './reasons/apply.ts';
import { drainReasons } from './reasons/drain.ts';
import { evidenceReasons } from './reasons/evidence.ts';
import { gateReasons } from './reasons/gates.ts';
import { inputReasons } from './reasons/input.ts';
import { metallbReasons } from './reasons/metallb.ts';
import { pkiReasons } from './reasons/pki.ts';
import { preflightReasons } from './reasons/preflight.ts';
import type { Reason } from './reasons/reason.ts';
import { sourceReasons } from './reasons/source.ts';

/** The closed table of reasons: what status, events, `keelson explain` and the reference say. */
export const reasons: readonly Reason[] = [
  ...inputReasons,
  ...pkiReasons,
  ...acceptanceReasons,
  ...preflightReasons,
  ...sourceReasons,
  ...applyReasons,
  ...gateReasons,
  ...evidenceReasons,
  ...drainReasons,
  ...addressReasons,
  ...metallbReasons,
];

const byName = new Map(reasons.map((reason) => [reason.reason, reason]));

export const findReason = (reason: string): Reason | undefined => byName.get(reason);

/**
 * The message of a reason with its values filled in.
 * @throws TypeError for a reason that is not in the table, or a value that is not given.
 */
export function reasonMessage(reason: string, values: Readonly<Record<string, string | number>> = {}): string {
  const found = byName.get(reason);
  if (found === undefined) throw new TypeError(`reason ${reason} is not in the table`);
  return found.template.replace(/\{([a-zA-Z]+)\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new TypeError(`reason ${reason} needs a value for ${name}`);
    return String(value);
  });
}

const retryText: Readonly<Record<Reason['retry'], string>> = {
  retry: 'It is tried again by itself.',
  terminal: 'No retry helps: what was asked for has to change.',
  wait: 'It goes on by itself once what it waits for has happened.',
};

const placeText = ({ condition }: Reason): string => {
  if (condition === 'Input') return 'an error of a command; nothing was written';
  if (condition === 'Gate') return 'a gate of a phase';
  if (condition === 'Evidence') return 'evidence of a probe';
  if (condition === 'Event') return 'an Event';
  if (condition === 'Deletion') return 'the deletion of an object';
  return `condition ${condition}`;
};

/** Several lines for a person who met a reason. */
export function explainReason(reason: Reason): string {
  return [
    `${reason.reason} (${reason.severity})`,
    `  shown in:   ${placeText(reason)}`,
    `  says:       ${reason.template}`,
    `  goes on:    ${retryText[reason.retry]}`,
    `  what to do: ${reason.remedy}`,
    `  more:       ${reason.runbook}`,
  ].join('\n');
}
