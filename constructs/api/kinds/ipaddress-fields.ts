import { z } from 'zod';
import { type CelRule, listMap } from '../cel.ts';
import { requiredText, text, timestamp } from '../fields.ts';

/**
 * Field types of the address kinds. They take what the controllers before ours have stored; where that is looser than we
 * want, a rule refuses it in new objects, and what is stored stays writable as long as it does not change.
 */

export const objectNameText = () => requiredText(253);

export const reclaimPolicies = ['Retain', 'Delete'] as const;
export type ReclaimPolicy = (typeof reclaimPolicies)[number];

/** Conditions as Kubernetes defines them for everybody: drivers, which are not ours, may report some of their own. */
export const standardConditions = () =>
  z
    .array(
      z.strictObject({
        type: z
          .string()
          .min(1)
          .max(316)
          .regex(/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/),
        status: z.enum(['True', 'False', 'Unknown']),
        observedGeneration: z.int().min(0).optional(),
        lastTransitionTime: timestamp(),
        reason: z
          .string()
          .min(1)
          .max(1024)
          .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/),
        message: text(32_768),
      }),
    )
    .max(64)
    .meta({ ...listMap('type') });

const octet = '(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const group = '(0|[1-9a-f][0-9a-f]{0,3})';

/** Forms of IPv6 with `::` for at least two groups, by the number of groups before it. */
const shortened = [
  `:(:${group}){1,6}`,
  `(${group}:){1,6}:`,
  '::',
  ...[1, 2, 3, 4, 5].map((before) => `(${group}:){${before}}(:${group}){1,${6 - before}}`),
];
/** Forms with `::` for exactly so many groups. */
const exactly = (zeros: number): string =>
  Array.from({ length: 9 - zeros }, (_, before) => {
    const after = 8 - zeros - before;
    if (before === 0) return `:(:${group}){${after}}`;
    if (after === 0) return `(${group}:){${before}}:`;
    return `(${group}:){${before}}(:${group}){${after}}`;
  }).join('|');

const matches = (pattern: string): string => `self.matches('${pattern}')`;

/**
 * `self` is an address in its canonical form (RFC 5952), the same text that our parser writes. The longest run of zeros is
 * the one that is shortened, the first of several; one zero is none. An IPv4 address written as IPv6 is refused.
 */
export const canonicalAddress: CelRule = {
  rule: [
    `${matches(`^(${octet}[.]){3}${octet}$`)}`,
    [
      matches(`^(${group}(:${group}){7}|${shortened.join('|')})$`),
      `!${matches(`^::ffff:${group}:${group}$`)}`,
      `(self.contains('::') || !${matches('(^|:)0:0(:|$)')})`,
      `!${matches('(^|:)0::|::0(:|$)')}`,
      `!(${matches(`^(${exactly(2)})$`)} && ${matches('(^|:)0:0:.*::|::.*:0:0:0(:|$)')})`,
      `!(${matches(`^(${exactly(3)})$`)} && ${matches('(^|:)0:0:0:.*::|::.*:0:0:0:0(:|$)')})`,
    ].join(' && '),
  ].join(' || '),
  message: 'address must be an IPv4 or IPv6 address in canonical form, such as 203.0.113.7 or 2001:db8::7',
};
