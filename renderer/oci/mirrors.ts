import type { RegistryMirror } from '../../constructs/api/cluster.ts';
import { parseImageRef } from '../../constructs/lib/imageref.ts';
import { type Reference, referenceName } from './reference.ts';

const trimmed = (text: string): string => text.replace(/^oci:\/\//, '').replace(/\/+$/, '');

function covers(rule: RegistryMirror, name: string): boolean {
  const match = trimmed(rule.match);
  return name === match || name.startsWith(`${match}/`);
}

/** The rule with the longest `match` that is the name or a leading part of it (whole path components). */
export function mirrorRuleFor(name: string, rules: readonly RegistryMirror[]): RegistryMirror | undefined {
  return rules
    .filter((rule) => covers(rule, name))
    .reduce<RegistryMirror | undefined>(
      (best, rule) => (best === undefined || trimmed(rule.match).length > trimmed(best.match).length ? rule : best),
      undefined,
    );
}

/** `registry/repository` as it is pulled: rewritten by the mirror rule that covers it, if any. */
export function mirrorName(name: string, rules: readonly RegistryMirror[]): string {
  const rule = mirrorRuleFor(name, rules);
  return rule === undefined ? name : `${trimmed(rule.mirror)}${name.slice(trimmed(rule.match).length)}`;
}

/** The reference as it is pulled; tag and digest stay. Undefined when a rule makes a name that is none. */
export function mirrorReference(ref: Reference, rules: readonly RegistryMirror[]): Reference | undefined {
  const name = mirrorName(referenceName(ref), rules);
  const parsed = parseImageRef(name);
  if (parsed?.registry === undefined || parsed.tag !== undefined || parsed.digest !== undefined) return undefined;
  return { ...ref, registry: parsed.registry, repository: parsed.repository };
}

/** Secrets by which nodes pull an image that is rendered under this name: those of the rules that lead there. */
export function pullSecretsOf(image: string, rules: readonly RegistryMirror[]): string[] {
  const leading = rules.filter(({ mirror }) => image.startsWith(`${trimmed(mirror)}/`));
  return [...new Set(leading.flatMap(({ pullSecret }) => pullSecret ?? []))].sort();
}

/** The hosts that mirror rules lead to. */
export function mirrorHosts(rules: readonly RegistryMirror[]): string[] {
  return [...new Set(rules.map((rule) => trimmed(rule.mirror).split('/')[0] ?? ''))].filter((host) => host !== '');
}

/** The rules without their mapping: what they say of their hosts (certificates) stays, and references lead nowhere else. */
export const unmirrored = (rules: readonly RegistryMirror[]): RegistryMirror[] =>
  rules.map((rule) => {
    const host = trimmed(rule.mirror).split('/')[0] ?? '';
    return { ...rule, match: host, mirror: host };
  });
